import '$lib/styles/tokens.css';
import '$lib/styles/base.css';
import '$lib/styles/table.css';
import { mount } from 'svelte';
import { languages } from '$lib/i18n/index.svelte';
import { keyboard } from '$lib/keyboard.svelte';
import { router } from '$lib/router/router.svelte';
import { session } from '$lib/session.svelte';
import { themes } from '$lib/theme.svelte';
import App from './shell/App.svelte';

themes.begin();
languages.begin();
router.begin();
keyboard.begin();
void session.begin();

mount(App, { target: document.getElementById('app')! });
