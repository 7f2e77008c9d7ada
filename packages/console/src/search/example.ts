// An example for a server that holds nothing yet: short texts whose questions share no words with them.
import { call } from '../lib/api';
import { bulkLines } from '../add/bulk';
import { fieldsFor } from '../../../cli/src/documents/file-mapping';

export const EXAMPLE_INDEX = 'sparrow-example';

export const EXAMPLE_QUESTIONS = [
  'how to avoid pain after running',
  'broken bike',
  'heart attack first aid',
  'what to do if someone is freezing',
  'protect my account from hackers',
  'why does everything cost more',
];

const TEXTS: readonly (readonly [title: string, topic: string, text: string])[] = [
  [
    'Sore muscles',
    'health',
    'Sore muscles recover faster with rest, water and gentle stretching. Warming up before exercise and cooling down afterwards keeps legs from aching the next day.',
  ],
  [
    'Agoraphobia',
    'health',
    'Agoraphobia is an anxiety disorder: people avoid crowds, wide squares and places that are hard to leave, and in severe cases stay at home.',
  ],
  [
    'Yeast',
    'kitchen',
    'Yeast eats the sugar in dough and gives off carbon dioxide. The bubbles are caught by gluten, so the loaf grows before it is baked.',
  ],
  [
    'The blue whale',
    'nature',
    'Blue whales are the largest mammals that ever lived. They grow to thirty metres and feed on tiny krill in cold oceans.',
  ],
  [
    'Cardiac arrest',
    'health',
    'When somebody collapses and does not breathe, call an ambulance and press hard and fast on the middle of the chest until help arrives.',
  ],
  [
    'Pensions',
    'money',
    'Retirement savings grow by compound interest: whoever puts a little aside every month from an early age needs far less later on.',
  ],
  [
    'Volcanoes',
    'nature',
    'Lava is rock so hot that it flows. It builds mountains layer by layer, and its ash makes the soil around them fertile.',
  ],
  [
    'Migratory birds',
    'nature',
    'Swallows fly from Europe to Africa each autumn. They find their way by the sun, the stars and the magnetic field of the earth.',
  ],
  [
    'House sparrows',
    'nature',
    'Sparrows live wherever people do. They nest under roofs, bathe in dust, and eat seeds and crumbs in noisy flocks.',
  ],
  [
    'Insomnia',
    'health',
    'People who lie awake at night should get up at the same hour every day, keep screens out of the bedroom and drink no coffee after noon.',
  ],
  [
    'Photosynthesis',
    'science',
    'Leaves turn light, water and carbon dioxide into sugar, and give off the oxygen that animals breathe.',
  ],
  [
    'Black holes',
    'science',
    'A star that collapses under its own weight can become so dense that not even light gets away from it.',
  ],
  [
    'Vaccination',
    'health',
    'A vaccine shows the immune system a harmless piece of a virus, so that it recognises the real one later.',
  ],
  [
    'The printing press',
    'history',
    'Gutenberg cast letters of metal that could be used again and again. Within fifty years books were cheap enough for merchants and students.',
  ],
  [
    'The Great Fire of London',
    'history',
    'In 1666 a bakery in Pudding Lane burst into flames. The wind carried them for four days, and most of the old city was lost.',
  ],
  [
    'Roman aqueducts',
    'history',
    'Rome brought drinking water from springs far away over arches of stone, with a slope of only a few centimetres for each hundred metres.',
  ],
  [
    'Bicycle tyres',
    'home',
    'A flat tyre is mended with a patch: find the hole under water, roughen the rubber, spread glue, wait, and press the patch on.',
  ],
  [
    'Dripping taps',
    'home',
    'A tap that drips usually needs a new washer. Close the valve, unscrew the handle and put in a ring of the same size.',
  ],
  [
    'Mortgages',
    'money',
    'A home loan is paid back over decades. At first most of each instalment is interest, later most of it is the debt itself.',
  ],
  [
    'Inflation',
    'money',
    'When prices rise faster than wages, the same salary buys less. Central banks answer with higher interest rates.',
  ],
  [
    'Sourdough',
    'kitchen',
    'A starter of flour and water catches wild yeast from the air. Fed every day it stays alive for years and gives bread its sour taste.',
  ],
  [
    'Sharp knives',
    'kitchen',
    'A blunt blade slips and cuts fingers. Draw it over a whetstone at a steady angle, first the coarse side, then the fine one.',
  ],
  [
    'Chess openings',
    'leisure',
    'Take the centre with pawns, bring out knights and bishops, and put the king into safety before you attack.',
  ],
  [
    'Stamp collecting',
    'leisure',
    'Philatelists keep rare stamps in albums. A misprint can be worth more than a house.',
  ],
  [
    'Learning the piano',
    'leisure',
    'Ten minutes of practice every day do more than two hours on Sunday. Play slowly at first, each hand alone.',
  ],
  [
    'Passwords',
    'computers',
    'A long sentence is harder to guess than a short jumble of signs. Use another one for every site, and let a manager remember them.',
  ],
  [
    'Backups',
    'computers',
    'Disks fail without warning. Keep three copies of what matters, on two kinds of media, one of them in another place.',
  ],
  [
    'Search engines',
    'computers',
    'An inverted index lists for every word the documents that contain it, so that a query only looks at a few lists instead of all pages.',
  ],
  [
    'Glaciers',
    'nature',
    'Snow that never melts turns into ice, which creeps downhill and grinds valleys into the shape of a bowl.',
  ],
  [
    'Hypothermia',
    'health',
    'Someone who fell into icy water must be warmed slowly: dry clothes, blankets, a hot drink, and no alcohol.',
  ],
];

/** Creates the index of the example and fills it; it is searchable when this resolves. */
export async function loadExample(): Promise<void> {
  const topic = { name: 'topic', type: 'keyword', example: '' } as const;
  await call('PUT', `/${EXAMPLE_INDEX}`, {
    mappings: { properties: fieldsFor([topic], ['title', 'text'], 'hybrid') },
  });
  const documents = TEXTS.map(([title, topic, text], at) => ({ id: String(at + 1), source: { title, topic, text } }));
  await call('POST', `/${EXAMPLE_INDEX}/_bulk?refresh=true`, bulkLines(documents));
}
