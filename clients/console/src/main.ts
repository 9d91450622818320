import '$lib/styles/tokens.css';
import '$lib/styles/base.css';
import '$lib/styles/table.css';
import '$lib/styles/parts.css';
import '$lib/styles/tones.css';
import { mount } from 'svelte';
import { languages } from '$lib/i18n/index.svelte';
import { keyboard } from '$lib/keyboard.svelte';
import { router } from '$lib/router/router.svelte';
import { session } from '$lib/session.svelte';
import { themes } from '$lib/theme.svelte';
import { screenAt } from './screens';
import App from './shell/App.svelte';

themes.begin();
languages.begin();
keyboard.begin();
// Its code is on the way while the gateway says who one is.
void screenAt(location.pathname.replace(/^\/console/, '') || '/')?.screen.load().catch(() => {});
// Who comes back from an issuer goes on where they were.
const arriving = session.arrive();
router.begin();
void arriving;

mount(App, { target: document.getElementById('app')! });
