import { svelte } from '@sveltejs/vite-plugin-svelte';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { precompress } from './scripts/precompress.mjs';

// The gateway that `npm run dev` speaks to.
const gateway = process.env.KAIRO_URL ?? 'http://127.0.0.1:7420';

// To the gateway, pages of the development server are those of another site.
const proxied = {
  target: gateway,
  changeOrigin: true,
  configure: (proxy: { on(event: 'proxyReq', then: (request: { removeHeader(name: string): void }) => void): void }) =>
    proxy.on('proxyReq', (request) => request.removeHeader('origin')),
};

export default defineConfig({
  base: '/console/',
  plugins: [svelte(), precompress()],
  resolve: { alias: { $lib: fileURLToPath(new URL('./src/lib', import.meta.url)) } },
  server: { proxy: { '/v1': proxied, '/openapi.json': proxied } },
  build: {
    target: 'es2022',
    // The policy of the page allows no `data:` addresses of scripts and styles.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
  // What is a module to browsers is one to the tests, too.
  test: { include: ['src/**/*.test.ts'], environment: 'node', server: { deps: { inline: ['rrule'] } } },
});
