import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import test from 'ava';
import { Story } from './story.ts';

/**
 * A story is a text file: lines that begin with `>` are told to the plan, what it answers stands below them. To take the answers as they
 * are now, for review, run with UPDATE_STORIES=1.
 */
const FOLDER = new URL('stories/', import.meta.url);

for (const file of readdirSync(FOLDER).sort()) {
  test(`the plan goes as the story tells it: ${file.replace('.txt', '').replaceAll('-', ' ')}`, (t) => {
    const text = readFileSync(new URL(file, FOLDER), 'utf8');
    const told = retell(text);
    if (process.env.UPDATE_STORIES === '1') writeFileSync(new URL(file, FOLDER), told);
    t.is(told, process.env.UPDATE_STORIES === '1' ? told : text);
  });
}

function retell(text: string): string {
  const story = new Story();
  const lines: string[] = [];
  for (const line of text.split('\n')) {
    if (line.startsWith('#') || line === '') lines.push(line);
    else if (line.startsWith('> ')) lines.push(line, ...story.tell(line.slice(2)).map((answer) => `  ${answer}`));
  }
  return `${lines.join('\n').trimEnd()}\n`;
}
