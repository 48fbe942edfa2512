export const STYLE = `
:root { --bg: #fcfcfb; --fg: #1c1c1a; --dim: #63625d; --line: #e2e1dc;
  --c1: #2a78d6; --c2: #eb6834; --c3: #1baf7a; --c4: #b07d00; --c5: #8a5cd0; --c6: #c2408a; --c7: #6f7d8c; --good: #17794f; --bad: #b3261e; }
@media (prefers-color-scheme: dark) { :root { --bg: #161615; --fg: #eceae4; --dim: #a09e97; --line: #343431;
  --c1: #5b9df0; --c2: #f28a5e; --c3: #3fca98; --c4: #e0ae3a; --c5: #b08df0; --c6: #ec74b4; --c7: #9fb0c0; --good: #4ecb97; --bad: #ff8a80; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--bg); color: var(--fg); font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 64rem; margin: 0 auto; padding: 1rem; }
p { max-width: 46rem; }
h1 { font-size: 1.6rem; } h2 { margin-top: 3rem; padding-top: .6rem; border-top: 1px solid var(--line); font-size: 1.3rem; }
h3 { margin: 1.6rem 0 .2rem; font-size: 1rem; line-height: 1.3; }
.caption, small { color: var(--dim); font-size: .85rem; } .caption { margin: 0 0 .4rem; }
.plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 24rem), 1fr)); gap: 0 2.5rem; }
figure { margin: 0; min-width: 0; }
svg { width: 100%; max-width: 30rem; height: auto; display: block; } svg text { fill: var(--fg); font-size: 14px; } svg .label { fill: var(--dim); }
svg .grid { stroke: var(--line); } svg polyline { fill: none; stroke-width: 2.2; }
.legend { display: flex; flex-wrap: wrap; gap: .1rem 1rem; font-size: .85rem; }
.key i { display: inline-block; width: .8em; height: .8em; border-radius: 50%; margin-right: .4em; }
.row { margin: .5rem 0; font-size: .9rem; } .track { position: relative; height: 1rem; margin-right: 4px; }
.track i { position: absolute; background: var(--color); } .median { left: 0; top: 1px; bottom: 1px; border-radius: 2px; }
.range { top: 50%; height: 1px; } .mark { top: 0; bottom: 0; width: 2px; }
.wide { overflow-x: auto; } .wide td:first-child { min-width: 9rem; } table { border-collapse: collapse; font-size: .88rem; } th { text-align: left; color: var(--dim); font-weight: 600; vertical-align: bottom; }
th, td { padding: .3rem .9rem .3rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
.n { text-align: right; font-variant-numeric: tabular-nums; } td.n, .verdict { white-space: nowrap; } table.all td { white-space: nowrap; }
.met { color: var(--good); } .missed { color: var(--bad); } details { margin-top: 1rem; } summary { cursor: pointer; padding: .3rem 0; }
dl { display: grid; grid-template-columns: max-content minmax(0, 1fr); gap: .2rem 1rem; font-size: .9rem; } dt { color: var(--dim); } dd { margin: 0; overflow-wrap: anywhere; }
@media (max-width: 40rem) {
  svg text { font-size: 17px; }
  .stacked tr { display: grid; grid-template-columns: 1fr max-content; padding: .5rem 0; border-bottom: 1px solid var(--line); }
  .stacked tr:first-child { display: none; } .stacked, .stacked tbody { display: block; }
  .stacked td { border: 0; padding: 0; } .stacked td:first-child { grid-column: 1 / 3; } .stacked td:nth-child(2) { color: var(--dim); }
  .stacked td:nth-child(3) { grid-row: 3; grid-column: 1 / 3; } .stacked td:nth-child(3):empty { display: none; }
  dl { display: block; } dd { margin-bottom: .4rem; }
}
`;
