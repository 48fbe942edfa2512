import type { Picture } from './display.ts';
import type { Facts } from './facts.ts';
import { screen } from './screen.ts';

/** The services' demo, as a display shows it. */
export function servicePicture(facts: () => Facts): Picture {
  return {
    elapsedMs: () => facts().elapsedMs,
    screen: (size, style) => screen(facts(), size, style),
    statusLine: () => statusLine(facts()),
  };
}

function statusLine({ listed, served, failed, master, atMaster, atMirrored, atDirect }: Facts): string | undefined {
  if (listed.length === 0) return undefined;
  const rate = (perSecond: number) => `${perSecond.toFixed(1)}/s`;
  return [
    `listed: ${listed.join(' ')}`,
    `${served} served, ${failed} failed`,
    `master: ${master ?? 'none'}`,
    `messages: master ${rate(atMaster.perSecond)}, ${atMirrored.listeners} mirrored ${rate(atMirrored.perSecond)}, ` +
      `${atDirect.listeners} direct ${rate(atDirect.perSecond)}`,
  ].join(' | ');
}
