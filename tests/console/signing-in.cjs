// Who may see what.
'use strict';

const { barriers, demand, enter, keys, open, say, url } = require('./page.cjs');

module.exports = {
  /** Before there is anything to see, and when something is away. */
  async nothing(browser) {
    const { page } = await open(browser, { bypassCSP: true });
    const found = [];
    await page.goto(`${url}/console/`);
    await page.getByLabel('API key or token').waitFor();
    found.push(...(await barriers(page, 'signing in')));
    await enter(page, 'kairo_wrong');
    await page.getByRole('alert').getByText('does not take this key').waitFor();
    found.push(...(await barriers(page, 'a wrong key')));
    await enter(page, keys[0]);
    await page.getByText('No agent is defined yet').waitFor();
    found.push(...(await barriers(page, 'the overview, empty')));
    await page.getByRole('link', { name: 'Chat', exact: true }).first().click();
    await page.getByText('No agent is defined yet').waitFor();
    found.push(...(await barriers(page, 'the chat, empty')));
    await page.route('**/v1/agents*', (route) => route.abort());
    await page.getByRole('link', { name: 'Overview' }).click();
    await page.getByRole('alert').getByRole('button', { name: 'Try again' }).waitFor();
    found.push(...(await barriers(page, 'the overview, failed')));
    await page.unroute('**/v1/agents*');
    await page.getByRole('button', { name: 'Try again' }).click();
    await page.getByText('No agent is defined yet').waitFor();
    demand(found.length === 0, found.join('\n'));
  },

  /** What a key may not do is not shown. */
  async rights(browser) {
    const [reads, writes, ann] = keys;
    const { page } = await open(browser);
    const write = page.getByRole('textbox', { name: 'Write to default' });
    await page.goto(`${url}/console/chat/default`);
    await enter(page, reads);
    await page.getByText('This key may read, not write').waitFor();
    demand((await write.count()) === 0, 'nothing to write in for a key that may only read');
    await page.getByRole('button', { name: 'Sign out' }).click();
    await enter(page, writes);
    await page.getByText('This needs a key of the scope read.').waitFor();
    demand((await page.getByRole('link', { name: 'River' }).count()) === 0, 'no screen for a key that may not read');
    await page.getByRole('button', { name: 'Sign out' }).click();
    await enter(page, ann);
    await write.waitFor();
    demand((await page.getByLabel('You are').count()) === 0, 'a key of one user speaks as nobody else');
    await say(page, 'ahoy');
    await page.getByRole('link', { name: 'River' }).first().click();
    await page.getByRole('option', { name: /You said/ }).first().waitFor();
  },

  /** On its own machine one talks without a key, and administrates with the one that `kairo console` brings. */
  async machine(browser) {
    const { page } = await open(browser, { bypassCSP: true });
    const found = [];
    const fleet = page.getByRole('link', { name: 'Fleet' });
    await page.goto(`${url}/console/fleet`);
    await page.getByText('kairo console').waitFor();
    demand((await fleet.count()) === 0, 'no screen that is not for who has no key');
    found.push(...(await barriers(page, 'a screen that needs a key')));
    await page.getByRole('button', { name: 'Use a key' }).click();
    await page.getByLabel('API key or token').waitFor();
    await page.getByRole('button', { name: 'Go on without a key' }).click();
    await page.getByText('kairo console').waitFor();
    // As the command does, in another tab.
    const { page: opened } = await open(browser);
    await opened.goto(`${url}/console/#${new URLSearchParams({ key: keys[0] })}`);
    await opened.getByRole('link', { name: 'Fleet' }).first().waitFor();
    demand(!opened.url().includes(keys[0]), 'the address does not keep the key');
    await opened.reload();
    await opened.getByRole('link', { name: 'Fleet' }).first().waitFor();
    demand(found.length === 0, found.join('\n'));
  },

  /** One signs in at an issuer, and is where one wanted to go; an answer that was not asked for lets nobody in. */
  async issuer(browser) {
    const { page } = await open(browser);
    await page.goto(`${url}/console/signed-in?code=x&state=y`);
    await page.getByRole('alert').getByText('not to what was begun in this tab').waitFor();
    await page.goto(`${url}/console/chat/default`);
    await page.getByRole('button', { name: 'Sign in at https://login.example.com/' }).click();
    await page.waitForURL(`${url}/console/chat/default`);
    await page.getByRole('textbox', { name: 'Write to default' }).waitFor();
    await page.getByText('You are ann').waitFor();
    await page.reload();
    await say(page, 'ahoy');
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByLabel('API key or token').waitFor();
  },
};
