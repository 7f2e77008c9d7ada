import { render } from 'preact';

import { App } from './shell/app';
import './styles/base.css';
import './styles/shell.css';
import './styles/parts.css';
import './styles/search.css';
import './styles/screens.css';

const root = document.getElementById('app');
if (root !== null) render(<App />, root);
