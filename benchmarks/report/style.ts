export const STYLE = `
:root { --bg: #fcfcfb; --fg: #1c1c1a; --dim: #6b6a65; --line: #e2e1dc;
  --c1: #2a78d6; --c2: #eb6834; --c3: #1baf7a; --c4: #b07d00; --c5: #8a5cd0; --c6: #c2408a; --c7: #6f7d8c; --good: #17794f; --bad: #b3261e; }
@media (prefers-color-scheme: dark) { :root { --bg: #161615; --fg: #eceae4; --dim: #a09e97; --line: #343431;
  --c1: #5b9df0; --c2: #f28a5e; --c3: #3fca98; --c4: #e0ae3a; --c5: #b08df0; --c6: #ec74b4; --c7: #9fb0c0; --good: #4ecb97; --bad: #ff8a80; } }
body { margin: 0; background: var(--bg); color: var(--fg); font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 46rem; margin: 0 auto; padding: 1rem; }
h1 { font-size: 1.6rem; } h2 { margin-top: 2.5rem; font-size: 1.25rem; } h3 { margin: 1.6rem 0 0; font-size: 1rem; }
.caption { margin: 0 0 .4rem; color: var(--dim); font-size: .85rem; }
svg { width: 100%; height: auto; display: block; } svg text { fill: var(--fg); font-size: 14px; } svg .label { fill: var(--dim); }
svg .grid { stroke: var(--line); } svg polyline { fill: none; stroke-width: 2.5; } svg .mark { stroke-width: 3; } svg .range { stroke-width: 1.5; }
.legend { display: flex; flex-wrap: wrap; gap: .2rem 1rem; font-size: .85rem; } .key i { display: inline-block; width: .8em; height: .8em; border-radius: 50%; margin-right: .4em; }
.wide { overflow-x: auto; } table { border-collapse: collapse; font-size: .85rem; } th { text-align: left; color: var(--dim); font-weight: 600; }
th, td { padding: .3rem .8rem .3rem 0; border-bottom: 1px solid var(--line); vertical-align: top; } .n { text-align: right; font-variant-numeric: tabular-nums; }
.met { color: var(--good); } .missed { color: var(--bad); } details { margin-top: 1rem; } summary { cursor: pointer; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1rem; font-size: .9rem; } dt { color: var(--dim); } dd { margin: 0; overflow-wrap: anywhere; }
`;
