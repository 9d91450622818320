// What one sees when something is killed, restarted or built anew under the page, and of what was before.
'use strict';

const { conversation, demand, open, picture, say, tell, url, want } = require('./page.cjs');

module.exports = {
  /** What a model was writing is there after a reload; its agent's service is killed, and there is one answer all the same. */
  async killed(browser) {
    const { page, wrong } = await open(browser);
    await page.goto(`${url}/console/chat/teller`);
    await tell(page, 'tell me a story');
    const draft = page.locator('.draft', { hasText: 'Once upon a time' });
    await draft.waitFor();
    const written = await draft.innerText();
    await page.reload();
    await draft.waitFor();
    demand((await draft.innerText()) === written, `what was written before, not ${await draft.innerText()}`);
    await want('kill agent-runtime');
    await page.locator('[data-manner=answer]', { hasText: 'ever after' }).waitFor();
    await draft.waitFor({ state: 'detached' });
    const shown = await conversation(page);
    demand(shown.length === 2, `a message and one answer, not ${JSON.stringify(shown)}`);
    demand(wrong.length === 0, wrong.join('\n'));
  },

  /** The gateway goes and comes back: the page says so, what one said meanwhile is sent again, and nothing is missing. */
  async restarted(browser) {
    const { page } = await open(browser);
    await page.goto(`${url}/console/chat/teller`);
    await page.getByText('live', { exact: true }).waitFor();
    await want('stop gateway');
    await page.getByText(/not connected since/).waitFor();
    await tell(page, 'are you there?');
    await page.locator('[data-stage=failed]', { hasText: 'are you there?' }).waitFor();
    await want('start gateway');
    await page.getByText('live', { exact: true }).waitFor();
    await page.getByRole('button', { name: 'Send again' }).click();
    await page.locator('[data-manner=answer]', { hasText: 'You said: are you there?' }).waitFor();
    await page.locator('[data-stage=failed]').waitFor({ state: 'detached' });
  },

  /** A read model is built anew beside the live one, and takes its place. */
  async rebuilt(browser) {
    const { page, wrong } = await open(browser);
    await page.goto(`${url}/console/fleet`);
    const model = page.locator('article', { has: page.getByRole('heading', { name: 'read-model', exact: true }) });
    await model.getByText('Generation 1').waitFor();
    await model.getByRole('button', { name: 'Rebuild' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Rebuild' }).click();
    await model.locator('li', { hasText: 'Generation 2' }).getByText('live', { exact: true }).waitFor();
    await page.goto(`${url}/console/actions?show=all`);
    await page.locator('[data-row]').first().waitFor();
    demand(wrong.length === 0, wrong.join('\n'));
  },

  /** What an agent knew before, from the keyboard; the place is in the address. */
  async travel(browser) {
    const { page, wrong } = await open(browser);
    await page.goto(`${url}/console/chat/cook`);
    await say(page, 'ahoy');
    await page.goto(`${url}/console/replay/cook`);
    const heading = page.locator('#state');
    await heading.waitFor();
    const newest = await heading.innerText();
    await page.keyboard.press('Shift+ArrowLeft');
    await page.waitForURL(/at=\d+/);
    await page.waitForFunction((newest) => document.querySelector('#state')?.textContent !== newest, newest);
    const before = await heading.innerText();
    await page.reload();
    await heading.waitFor();
    demand((await heading.innerText()) === before, `the same place after a reload, not ${await heading.innerText()}`);
    await picture(page, 'replay');
    demand(wrong.length === 0, wrong.join('\n'));
  },
};
