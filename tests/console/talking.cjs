// Speaking with agents.
'use strict';

const { barriers, conversation, demand, open, picture, say, url } = require('./page.cjs');

/** Shown, never run. */
const HOSTILE = [
  '<img src=x onerror="window.ran=1"><script>window.ran=2</script>',
  '</textarea><svg onload=window.ran=3>',
  '\u001b[31mred\u001b[0m \u202Etxt.exe\u2066 javascript:window.ran=4 {{constructor.constructor("window.ran=5")()}}',
  'x'.repeat(5_000),
].join('\n');

/** Bytes of scripts until the first screen can be used, compressed. */
const MOST_FIRST = 90 * 1024;

/** An image of one pixel. */
const DOT = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==',
  'base64',
);

module.exports = {
  /** From the first page to an answer, and the same after a reload. */
  async chat(browser) {
    const { page, wrong } = await open(browser);
    await page.goto(`${url}/`);
    await page.waitForURL(`${url}/console/`);
    const first = page.getByRole('link', { name: /^Talk/ }).first();
    await first.waitFor();
    const bytes = await page.evaluate(() =>
      performance.getEntriesByType('resource').reduce((sum, { name, encodedBodySize }) => sum + (name.endsWith('.js') ? encodedBodySize : 0), 0),
    );
    demand(bytes > 0 && bytes <= MOST_FIRST, `the first screen takes ${bytes} bytes of scripts, and may take ${MOST_FIRST}`);
    await first.click();
    await page.getByLabel('You are').fill(`guest-${process.pid}`);
    await page.getByLabel('You are').press('Enter');
    await page.getByText('Nothing was said yet.').waitFor();
    await say(page, 'ahoy');
    await say(page, 'what time is it? time please');
    // An answer is shown before the stage of its message.
    await page.locator('article[data-stage=decided]').nth(1).waitFor();
    const before = await conversation(page);
    demand(before.length === 4, `two messages and two answers, not ${JSON.stringify(before)}`);
    demand(before[1].text.includes('You said: ahoy'), `the answer, not ${before[1].text}`);
    await page.locator('details[data-stage=done]', { hasText: 'tools.now' }).waitFor();
    await page.reload();
    await page.locator('[data-manner=answer]').nth(1).waitFor();
    const after = await conversation(page);
    await picture(page, 'chat');
    demand(JSON.stringify(after) === JSON.stringify(before), `${JSON.stringify(before)} after a reload, not ${JSON.stringify(after)}`);
    demand(wrong.length === 0, wrong.join('\n'));
  },

  /** What is written stays, one agent beside another, and images. */
  async several(browser) {
    const { context, page, wrong } = await open(browser);
    await context.addInitScript((user) => localStorage.setItem('kairo.user', user), `guest-${process.pid}`);
    await page.goto(`${url}/console/chat/default`);
    const field = (agent) => page.getByRole('textbox', { name: `Write to ${agent}` });
    await field('default').fill('half a thought');
    await page.reload();
    await field('default').waitFor();
    demand((await field('default').inputValue()) === 'half a thought', 'what was written is there after a reload');
    await page.getByLabel('Attach').setInputFiles({ name: 'dot.png', mimeType: 'image/png', buffer: DOT });
    await page.getByRole('img', { name: 'Image dot.png' }).waitFor();
    const found = await barriers(page, 'an image that is attached');
    await field('default').press('Enter');
    const said = page.locator('article.said', { hasText: 'half a thought' }).getByRole('img', { name: 'Image dot.png' });
    await said.waitFor();
    await page.reload();
    await said.waitFor();
    const wide = await said.evaluate((image) => image.decode().then(() => image.naturalWidth));
    demand(wide === 1, `the image, not one ${wide} wide`);
    await field('default').fill('@co');
    await page.getByRole('option', { name: /@cook/ }).waitFor();
    found.push(...(await barriers(page, 'names that are offered')));
    await field('default').press('Tab');
    demand((await field('default').inputValue()) === '@cook ', 'the name of the agent');
    await field('default').pressSequentially('ahoy');
    await field('default').press('Enter');
    const beside = page.getByRole('log', { name: 'Conversation with cook' });
    await beside.locator('[data-manner=answer]', { hasText: 'You said: ahoy' }).waitFor();
    await page.waitForURL(/beside=cook/);
    const room = await page.evaluate(() => window.innerWidth - document.documentElement.scrollWidth);
    demand(room >= 0, 'nothing wider than the window');
    found.push(...(await barriers(page, 'two conversations')));
    await picture(page, 'several');
    await page.getByRole('button', { name: 'Close the conversation with cook' }).click();
    await beside.waitFor({ state: 'detached' });
    demand(found.length === 0, found.join('\n'));
    demand(wrong.length === 0, wrong.join('\n'));
  },

  /** What others write is shown, and never runs. */
  async hostile(browser) {
    const { page, wrong } = await open(browser);
    await page.goto(`${url}/console/chat/default`);
    await say(page, HOSTILE);
    const shown = await conversation(page);
    for (const { text } of shown.slice(-2)) {
      demand(text.includes('<img src=x onerror="window.ran=1">'), `markup as it is written, not ${text.slice(0, 200)}`);
      demand(text.includes('␛') && text.includes('U+202E'), `controls by their names, not ${text.slice(0, 400)}`);
      demand(!/[\u001b\u202e]/.test(text), 'no control as it is');
    }
    await page.goto(`${url}/console/river?agent=default`);
    await page.locator('[role=option]').last().click();
    await page.getByRole('region', { name: 'Event' }).waitFor();
    const width = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
    demand(width[0] <= width[1], `nothing wider than the window: ${width}`);
    demand((await page.evaluate(() => window.ran)) === undefined, 'something ran');
    demand(wrong.length === 0, wrong.join('\n'));
  },
};
