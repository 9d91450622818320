// Looking at what there is.
'use strict';

const { demand, open, picture, say, url } = require('./page.cjs');

module.exports = {
  /** Every event, from the keyboard. */
  async river(browser) {
    const { page, wrong } = await open(browser);
    await page.goto(`${url}/console/river`);
    const option = (name) => page.getByRole('option', { name });
    await option(/agent\.action.*You said/).last().waitFor();
    await page.getByLabel('Kinds').fill('user.message agent.message agent.action');
    await page.waitForURL(/kinds=user\.message/);
    await option(/user\.message/).first().click();
    const details = page.getByRole('region', { name: 'Event' });
    const kind = () => details.getByRole('heading', { level: 2 }).innerText();
    demand((await kind()) === 'user.message', await kind());
    await page.keyboard.press('e');
    demand((await kind()) === 'agent.message', `what it caused, not ${await kind()}`);
    await page.keyboard.press('c');
    demand((await kind()) === 'user.message', `its cause, not ${await kind()}`);
    await picture(page, 'river');
    await page.keyboard.press('j');
    await page.keyboard.press('k');
    demand((await kind()) === 'user.message', `there and back, not ${await kind()}`);
    await page.keyboard.press('Escape');
    await details.waitFor({ state: 'detached' });
    const counts = await page.locator('[data-counts]').getAttribute('data-counts');
    const [received, kept, folded] = counts.split(/[=+]/).map(Number);
    demand(received > 0 && received === kept + folded, counts);
    demand(wrong.length === 0, wrong.join('\n'));
  },

  /** Lists of what there is: chosen from the keyboard, in the address, and the same after a reload. */
  async boards(browser) {
    const { page, wrong } = await open(browser);
    await page.goto(`${url}/console/chat/default`);
    await say(page, 'what time is it?');
    for (const path of ['/actions?show=all', '/threads?show=all']) {
      await page.goto(`${url}/console${path}`);
      await page.locator('[data-row]').first().waitFor();
      await page.keyboard.press('j');
      const details = page.getByRole('region', { name: 'Details' });
      const heading = details.getByRole('heading', { level: 2 });
      const chosen = await heading.innerText();
      demand(chosen !== '' && new URL(page.url()).pathname.split('/').length > 3, `${path}: chosen in the address, not ${page.url()}`);
      await page.reload();
      await heading.waitFor();
      demand((await heading.innerText()) === chosen, `${path}: the same after a reload, not ${await heading.innerText()}`);
      await page.keyboard.press('Escape');
      await details.waitFor({ state: 'detached' });
    }
    await page.goto(`${url}/console/actions?show=all`);
    await page.locator('[data-row]', { hasText: 'tools.now' }).first().click();
    await page.getByText('"unix"').waitFor();
    await page.setViewportSize({ width: 320, height: 640 });
    for (const path of ['/inbox', '/actions?show=all', '/threads?show=all', '/tasks', '/memories']) {
      await page.goto(`${url}/console${path}`);
      await page.getByRole('heading', { level: 1 }).waitFor();
      const width = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
      demand(width[0] <= width[1], `${path}: nothing wider than the window: ${width}`);
    }
    demand(wrong.length === 0, wrong.join('\n'));
  },
};
