// What it takes to show the console, beside an empty page in the same run: `scripts/bench console`. Figures go out as a line
// `found {…}`, times in milliseconds.
'use strict';

const { demand, open, url, want } = require('./page.cjs');

/** As a phone on a bad day has it. */
const SLOW = { offline: false, latency: 150, downloadThroughput: (1.6e6 / 8) | 0, uploadThroughput: (750e3 / 8) | 0 };
const LOADS = 5;
/** A task that takes longer is a long one, as browsers count them. */
const LONG_MS = 50;
const JUMPS = 40;
/** How far from the share of the story that was clicked at it may be, as a share: a row of pixels is more than one event. */
const NEARBY = 0.01;

const at = (sorted, part) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0;
const p95 = (values) => at([...values].sort((a, b) => a - b), 0.95);
const median = (values) => at([...values].sort((a, b) => a - b), 0.5);

/** A page whose frames and long tasks are written down from the first on. */
async function watched(browser, options) {
  const opened = await open(browser, options);
  await opened.context.addInitScript(() => {
    window.measured = { gaps: [], tasks: [] };
    new PerformanceObserver((list) => window.measured.tasks.push(...list.getEntries().map(({ duration }) => duration))).observe({
      type: 'longtask',
    });
    let before = 0;
    const frame = (now) => {
      if (before) window.measured.gaps.push(now - before);
      before = now;
      requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
  });
  return opened;
}

const begin = (page) => page.evaluate(() => Object.assign(window.measured, { gaps: [], tasks: [] }));
const measured = (page) => page.evaluate(() => window.measured);

/** First paint, and when a screen can be used: when its own element is there. */
async function load(browser, path, shown) {
  const { context, page } = await open(browser);
  const devtools = await context.newCDPSession(page);
  await devtools.send('Network.enable');
  await devtools.send('Network.emulateNetworkConditions', SLOW);
  await context.addInitScript((shown) => {
    const look = () => {
      if (document.querySelector(shown)) window.usable = performance.now();
      else requestAnimationFrame(look);
    };
    look();
  }, shown);
  await page.goto(`${url}${path}`);
  await page.waitForFunction(() => window.usable !== undefined);
  const times = await page.evaluate(() => {
    const paint = performance.getEntriesByName('first-contentful-paint')[0];
    const scripts = performance.getEntriesByType('resource').filter(({ name }) => name.endsWith('.js'));
    const bytes = scripts.reduce((sum, { encodedBodySize }) => sum + encodedBodySize, 0);
    return { paint: paint?.startTime ?? 0, usable: window.usable, bytes };
  });
  await context.close();
  return times;
}

async function loads(browser, path, shown) {
  const all = [];
  for (let count = 0; count < LOADS; count += 1) all.push(await load(browser, path, shown));
  const of = (name) => Math.round(median(all.map((times) => times[name])));
  return { first_paint: of('paint'), usable: of('usable'), script_bytes: of('bytes') };
}

/**
 * Writes down what tasks of pages take of a processor: where others share it, they may run in the middle of one, which then seems
 * long. Gives a function that ends it and tells.
 */
async function processing(browser) {
  const devtools = await browser.newBrowserCDPSession();
  const [tasks, mains] = [[], new Set()];
  devtools.on('Tracing.dataCollected', ({ value }) => {
    for (const { ph, name, pid, tid, tdur, args } of value) {
      if (name === 'thread_name' && args.name === 'CrRendererMain') mains.add(`${pid}/${tid}`);
      if (ph === 'X' && name.endsWith('RunTask')) tasks.push({ thread: `${pid}/${tid}`, took: (tdur ?? 0) / 1000 });
    }
  });
  const ended = new Promise((resolve) => devtools.once('Tracing.tracingComplete', resolve));
  const traceConfig = { recordMode: 'recordContinuously', includedCategories: ['toplevel'] };
  await devtools.send('Tracing.start', { transferMode: 'ReportEvents', traceConfig });
  return async () => {
    await devtools.send('Tracing.end');
    await ended;
    const all = tasks.filter(({ thread }) => mains.has(thread)).map(({ took }) => took);
    demand(all.length > 0, 'no task of a page was seen');
    return { processed_long: all.filter((took) => took > LONG_MS).length, processed_longest: Math.round(all.reduce((most, took) => Math.max(most, took), 0)) };
  };
}

/** Bytes of the page's heap that something still needs. */
async function heap(devtools) {
  await devtools.send('HeapProfiler.collectGarbage');
  const { metrics } = await devtools.send('Performance.getMetrics');
  return metrics.find(({ name }) => name === 'JSHeapUsedSize').value;
}

function told({ gaps, tasks }) {
  return { frames: gaps.length, gap_p95: +p95(gaps).toFixed(1), long_tasks: tasks.length, longest_task: Math.round(Math.max(0, ...tasks)) };
}

async function counts(page) {
  const [received, kept, folded] = (await page.locator('[data-counts]').getAttribute('data-counts')).split(/[=+]/).map(Number);
  return { received, kept, folded };
}

module.exports = {
  /** Loading the console over a slow network, beside a page with a word on it. */
  async loading(browser) {
    console.log(`found ${JSON.stringify({ empty_page: await loads(browser, '/healthz', 'body'), console: await loads(browser, '/console/', 'main li strong') })}`);
  },

  /** The river while very much happens, beside an empty page at the same time of it. */
  async flooded(browser) {
    const empty = await watched(browser);
    await empty.page.goto(`${url}/healthz`);
    await begin(empty.page);
    await want('publish shortly');
    const floor = told(await measured(empty.page));
    await empty.context.close();

    const { context, page } = await watched(browser);
    const devtools = await context.newCDPSession(page);
    await devtools.send('Performance.enable');
    await page.goto(`${url}/console/river`);
    await page.getByText('live', { exact: true }).waitFor();
    const [before, first] = [await counts(page), await heap(devtools)];
    await begin(page);
    const processed = await processing(browser);
    const published = Number(await want('publish'));
    const [seen, took] = [measured(page), await processed()];
    const arrived = page.waitForFunction(
      (wanted) => Number(document.querySelector('[data-counts]').dataset.counts.split('=')[0]) >= wanted,
      before.received + published,
    );
    // What did not arrive is told below.
    await arrived.catch(() => {});
    const after = await counts(page);
    demand(after.received === before.received + published, `${published} more than ${before.received}, not ${after.received}`);
    demand(after.received === after.kept + after.folded, `nothing lost: ${JSON.stringify(after)}`);
    console.log(`found ${JSON.stringify({ floor, published, ...after, ...told(await seen), ...took, heap_before: first, heap_after: await heap(devtools) })}`);
    await context.close();
  },

  /** A thread with very many events, and places in it that one jumps to: from the click to the frame that shows what stands there. */
  async jumping(browser) {
    const agent = await want('fill a thread');
    const { context, page } = await open(browser);
    // The numbers of those of its sentences that are drawn.
    await context.addInitScript(() => {
      window.sentences = () => [...document.querySelectorAll('[role=option]')].map((row) => Number(/Sentence (\d+) of/.exec(row.textContent)?.[1]));
    });
    await page.goto(`${url}/console/river?agent=${agent}&thread=long`);
    await page.locator('[role=option]').first().waitFor();
    const outline = await page.locator('.outline').boundingBox();
    // The story is told to its end when the page begins.
    const sentences = await page.evaluate(() => Math.max(...window.sentences()) + 1);
    const took = [];
    for (let count = 0; count < JUMPS; count += 1) {
      // All over it, in an order that goes back and forth: never to what is here already.
      const share = ((count * 7) % JUMPS) / JUMPS;
      await page.evaluate(
        ({ from, to }) => {
          const isThere = () => window.sentences().some((sentence) => from <= sentence && sentence <= to);
          window.jumped = new Promise((resolve) => {
            const begin = ({ timeStamp }) => {
              const look = () => requestAnimationFrame(() => (isThere() ? requestAnimationFrame((shown) => resolve(shown - timeStamp)) : look()));
              look();
            };
            addEventListener('click', begin, { once: true, capture: true });
          });
        },
        { from: (share - NEARBY) * sentences, to: (share + NEARBY) * sentences },
      );
      await page.mouse.click(outline.x + outline.width / 2, outline.y + share * outline.height + 1);
      took.push(await page.evaluate(() => window.jumped));
    }
    console.log(`found ${JSON.stringify({ jumps: took.length, jump_p50: +median(took).toFixed(1), jump_p95: +p95(took).toFixed(1), sentences })}`);
    await context.close();
  },
};
