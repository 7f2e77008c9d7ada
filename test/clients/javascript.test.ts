// The official JavaScript client of version 8; that of version 9 is installed by test/clients/node.test.ts.
import * as official from '@elastic/elasticsearch';

import { officialClient } from './official-client.js';

officialClient(official, 8);
