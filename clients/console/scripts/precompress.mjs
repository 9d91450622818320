// Beside each file that is worth it, the same compressed with brotli and gzip: the gateway serves them as they are.
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';

const COMPRESSIBLE = /\.(css|html|js|json|svg)$/;
/** What is smaller fits into one packet as it is. */
const SMALLEST = 1_000;

/** @returns {import('vite').Plugin} */
export function precompress() {
  return {
    name: 'precompress',
    apply: 'build',
    async writeBundle({ dir }) {
      const names = await readdir(dir, { recursive: true });
      for (const name of names.filter((name) => COMPRESSIBLE.test(name))) {
        const path = join(dir, name);
        const content = await readFile(path);
        if (content.length < SMALLEST) continue;
        const quality = { [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY };
        await writeFile(`${path}.br`, brotliCompressSync(content, { params: quality }));
        await writeFile(`${path}.gz`, gzipSync(content, { level: 9 }));
      }
    },
  };
}
