// Points on the earth: searches, sorts and aggregations against the same worked out from the documents.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { Random, SEED } from '../support/oracle/random.js';
import { type RunningServer, startServer } from '../support/server.js';

interface Point {
  lat: number;
  lon: number;
}

let server: RunningServer;
const SHOPS = 300;

const random = new Random(SEED);
const anywhere = (): Point => ({ lat: random.next() * 180 - 90, lon: random.next() * 360 - 180 });

/** The forms in which a document may say where it is. */
const FORMS: readonly ((point: Point) => unknown)[] = [
  ({ lat, lon }) => ({ lat, lon }),
  ({ lat, lon }) => [lon, lat],
  ({ lat, lon }) => `${String(lat)},${String(lon)}`,
  ({ lat, lon }) => `POINT (${String(lon)} ${String(lat)})`,
  ({ lat, lon }) => ({ type: 'Point', coordinates: [lon, lat] }),
];

/** Where each shop is: at one, two or no places. */
const places: Point[][] = Array.from({ length: SHOPS }, (_, at) => {
  if (at % 20 === 0) return [];
  return at % 7 === 0 ? [anywhere(), anywhere()] : [anywhere()];
});

const RADIUS = 6_371_008.7714;
function meters(a: Point, b: Point): number {
  const radians = (degrees: number): number => (degrees * Math.PI) / 180;
  const half = (difference: number): number => Math.sin(radians(difference) / 2) ** 2;
  const chord = half(b.lat - a.lat) + Math.cos(radians(a.lat)) * Math.cos(radians(b.lat)) * half(b.lon - a.lon);
  return 2 * RADIUS * Math.asin(Math.min(1, Math.sqrt(chord)));
}
const distances = (at: number, from: Point): number[] => (places[at] ?? []).map((place) => meters(place, from));

beforeAll(async () => {
  server = await startServer({ args: ['--deploy-at-start', 'false'] });
  const properties = { place: { type: 'geo_point' }, n: { type: 'integer' } };
  expect((await server.request('PUT', '/shops', { mappings: { properties } })).status).toBe(200);
  const lines = places.map((of, at) => {
    const form = FORMS[at % FORMS.length] ?? ((point: Point) => point);
    const shown = of.map(form);
    const place = shown.length === 1 && at % 2 === 0 ? shown[0] : shown;
    return `{"index":{"_id":"${String(at)}"}}\n${JSON.stringify({ n: at, place })}\n`;
  });
  // Several segments.
  for (let part = 0; part < 3; part++) {
    const { body } = await server.request(
      'POST',
      '/shops/_bulk?refresh=true',
      lines.filter((_, at) => at % 3 === part).join(''),
    );
    expect(body.errors, JSON.stringify(body.items.find((item: any) => item.index.error))).toBe(false);
  }
});

afterAll(() => server.stop());

const search = async (body: object): Promise<any> => {
  const answer = await server.request('POST', '/shops/_search', { size: SHOPS, ...body });
  expect(answer.status, JSON.stringify(answer.body)).toBe(200);
  return answer.body;
};
const found = async (query: object): Promise<number[]> => {
  const { hits } = await search({ query: { bool: { filter: [query] } } });
  return hits.hits.map((hit: { _id: string }) => Number(hit._id)).sort((a: number, b: number) => a - b);
};
const all = Array.from({ length: SHOPS }, (_, at) => at);

describe('points', () => {
  it('are found around a point, in whichever form it is given', async () => {
    for (const [number, form] of FORMS.entries()) {
      for (const kilometers of [500, 3000, 12_000]) {
        const center = anywhere();
        const query = { geo_distance: { distance: `${String(kilometers)}km`, place: form(center) } };
        const near = all.filter((at) => distances(at, center).some((distance) => distance <= kilometers * 1000));
        expect(await found(query), `form ${String(number)}, ${String(kilometers)} km`).toEqual(near);
      }
    }
  });

  it('are found in boxes, also across the 180th meridian', async () => {
    for (let turn = 0; turn < 12; turn++) {
      const [a, b] = [anywhere(), anywhere()];
      const [top, bottom] = [Math.max(a.lat, b.lat), Math.min(a.lat, b.lat)];
      const [left, right] = [a.lon, b.lon];
      const inside = ({ lat, lon }: Point): boolean =>
        lat <= top && lat >= bottom && (left <= right ? lon >= left && lon <= right : lon >= left || lon <= right);
      const expected = all.filter((at) => (places[at] ?? []).some(inside));
      const corners = { top_left: { lat: top, lon: left }, bottom_right: [right, bottom] };
      const wkt = `BBOX (${[left, right, top, bottom].map(String).join(', ')})`;
      for (const box of [corners, { top, left, bottom, right }, { wkt }]) {
        expect(await found({ geo_bounding_box: { place: box } }), JSON.stringify(box)).toEqual(expected);
      }
    }
  });

  it('are found in the cell of a geohash, which is four corners', async () => {
    const inside = ({ lat, lon }: Point): boolean => lat >= 0 && lat <= 45 && lon >= -90 && lon <= -45;
    const expected = all.filter((at) => (places[at] ?? []).some(inside));
    expect(expected.length).toBeGreaterThan(0);
    for (const box of [
      { top_left: 'd', bottom_right: 'd' },
      { top_right: 'd', bottom_left: 'd' },
    ]) {
      expect(await found({ geo_bounding_box: { place: box } })).toEqual(expected);
    }
  });

  it('are counted, whatever their distance', async () => {
    const { aggregations } = await search({
      size: 0,
      aggs: { values: { value_count: { field: 'place' } }, without: { missing: { field: 'place' } } },
    });
    expect(aggregations.values.value).toBe(places.flat().length);
    expect(aggregations.without.doc_count).toBe(places.filter((of) => of.length === 0).length);
  });

  it('are sorted by their distance, a page after the other', async () => {
    const from = anywhere();
    const expected = all
      .map((at) => [at, Math.min(...distances(at, from), Infinity)] as const)
      .sort((a, b) => a[1] - b[1] || a[0] - b[0]);
    const sort = [{ _geo_distance: { place: from, order: 'asc', unit: 'km' } }, { n: 'asc' }];
    const ids: number[] = [];
    let after: unknown[] | undefined;
    for (;;) {
      const { hits } = await search({ size: 70, sort, ...(after === undefined ? {} : { search_after: after }) });
      if (hits.hits.length === 0) break;
      for (const hit of hits.hits) {
        const distance = (expected[ids.length]?.[1] ?? 0) / 1000;
        ids.push(Number(hit._id));
        if (distance === Infinity) expect(hit.sort[0]).toBe('Infinity');
        else expect(Math.abs(hit.sort[0] - distance)).toBeLessThan(0.001);
      }
      after = hits.hits.at(-1).sort;
    }
    expect(ids).toEqual(expected.map(([at]) => at));
    // Each place of a shop has a distance from each point: the farthest counts when descending, unless the request says otherwise.
    const [north, south] = [
      { lat: 60, lon: 0 },
      { lat: -60, lon: 100 },
    ];
    const farthest = await search({
      size: 5,
      query: { exists: { field: 'place' } },
      sort: [{ _geo_distance: { place: [north, [south.lon, south.lat]], order: 'desc', unit: 'm' } }],
    });
    const far = all
      .filter((at) => places[at]?.length)
      .map((at) => Math.max(...distances(at, north), ...distances(at, south)))
      .sort((a, b) => b - a);
    for (const [place, hit] of farthest.hits.hits.entries()) {
      expect(Math.abs(hit.sort[0] - (far[place] ?? 0))).toBeLessThan(1);
    }
  });

  it('are counted by their distance', async () => {
    const origin = anywhere();
    const ranges = [{ to: '2000' }, { from: 2000, to: 9000, key: 'middle' }, { from: 9000 }];
    const { aggregations } = await search({
      size: 0,
      aggs: { far: { geo_distance: { field: 'place', origin, unit: 'km', ranges } } },
    });
    const count = (from: number, to: number): number =>
      all.filter((at) => distances(at, origin).some((distance) => distance >= from * 1000 && distance < to * 1000))
        .length;
    expect(aggregations.far.buckets).toEqual([
      { key: '*-2000.0', from: 0, to: 2000, doc_count: count(0, 2000) },
      { key: 'middle', from: 2000, to: 9000, doc_count: count(2000, 9000) },
      { key: '9000.0-*', from: 9000, doc_count: count(9000, Infinity) },
    ]);
  });

  it('raise scores by their nearness', async () => {
    const origin = anywhere();
    const near = (at: number): number => Math.min(...distances(at, origin));
    const feature = await search({ query: { distance_feature: { field: 'place', origin, pivot: '1000km' } } });
    expect(feature.hits.hits).toHaveLength(places.filter((of) => of.length > 0).length);
    for (const hit of feature.hits.hits) {
      expect(hit._score).toBeCloseTo(1_000_000 / (1_000_000 + near(Number(hit._id))), 4);
    }
    const gauss = { place: { origin, scale: '3000km', offset: '100km', decay: 0.5 } };
    const decayed = await search({
      query: { function_score: { query: { exists: { field: 'place' } }, functions: [{ gauss }] } },
    });
    for (const hit of decayed.hits.hits) {
      const distance = Math.max(0, near(Number(hit._id)) - 100_000);
      expect(hit._score).toBeCloseTo(0.5 ** ((distance / 3_000_000) ** 2), 4);
    }
  });

  it('exist, are shown, and are found after a merge and a kill', async () => {
    const having = all.filter((at) => places[at]?.length);
    expect(await found({ exists: { field: 'place' } })).toEqual(having);
    const shown = await search({ size: 2, query: { terms: { _id: ['1', '7'] } }, sort: ['n'], fields: ['place'] });
    const geojson = (at: number): unknown =>
      places[at]?.map(({ lat, lon }) => ({ type: 'Point', coordinates: [lon, lat] }));
    expect(shown.hits.hits.map((hit: any) => hit.fields.place)).toEqual([geojson(1), geojson(7)]);
    const everywhere = { geo_bounding_box: { place: { top: 90, left: -180, bottom: -90, right: 180 } } };
    await server.request('POST', '/shops/_forcemerge?max_num_segments=1');
    expect(await found(everywhere)).toEqual(having);
    await server.request('PUT', '/shops/_doc/0', { n: 0, place: 'u09tvw0f6szy' });
    await server.kill();
    server = await startServer({ args: ['--deploy-at-start', 'false'], data: server.data });
    await server.request('POST', '/shops/_refresh');
    expect(await found({ geo_distance: { distance: '50km', place: { lat: 48.85, lon: 2.35 } } })).toContain(0);
    await server.request('POST', '/shops/_update/0?refresh=true', { doc: { place: null } });
    expect(await found(everywhere)).toEqual(having);
  });
});

describe('what is no place', () => {
  const refused = async (path: string, body: object): Promise<string> => {
    const answer = await server.request(path.endsWith('_search') ? 'POST' : 'PUT', path, body);
    const { error } = answer.body;
    const cause = error.failed_shards?.[0]?.reason ?? error.caused_by ?? error;
    return `${String(answer.status)} ${String(cause.reason)}`;
  };
  const query = (of: object): Promise<string> => refused('/shops/_search', { query: of });

  it('is refused in a document, unless the mapping ignores it', async () => {
    expect(await refused('/shops/_doc/x', { place: { lat: 91, lon: 0 } })).toBe(
      '400 illegal latitude value [91.0] for place',
    );
    expect(await refused('/shops/_doc/x', { place: [181, 0] })).toBe('400 illegal longitude value [181.0] for place');
    expect(await refused('/shops/_doc/x', { place: 'nowhere!' })).toContain('unsupported symbol [o] in geohash');
    expect(await refused('/shops/_doc/x', { place: { lat: 1 } })).toBe('400 Required [lon]');
    const place = { type: 'geo_point', ignore_malformed: true };
    await server.request('PUT', '/loose', { mappings: { properties: { place } } });
    await server.request('PUT', '/loose/_doc/x?refresh=true', { place: 'nowhere!' });
    // What goes on round the earth is a place there.
    await server.request('PUT', '/loose/_doc/y?refresh=true', { place: [370, 100] });
    const { body } = await server.request('POST', '/loose/_search', { query: { term: { _ignored: 'place' } } });
    expect(body.hits.hits.map((hit: { _id: string }) => hit._id)).toEqual(['x']);
    const box = { geo_bounding_box: { place: { top: 81, left: -171, bottom: 79, right: -169 } } };
    const round = await server.request('POST', '/loose/_search', { query: box });
    expect(round.body.hits.hits.map((hit: { _id: string }) => hit._id)).toEqual(['y']);
  });

  it('is refused in a search', async () => {
    const center = { lat: 0, lon: 0 };
    expect(await query({ geo_distance: { distance: '1km', place: { lat: 100, lon: 0 } } })).toBe(
      '400 illegal latitude value [100.0] for query',
    );
    expect(await query({ geo_distance: { place: center } })).toBe(
      "400 geo_distance requires 'distance' to be specified",
    );
    expect(await query({ geo_distance: { distance: '-1km', place: center } })).toBe(
      '400 distance must be greater than zero',
    );
    expect(await query({ geo_distance: { distance: '1 parsec', place: center } })).toContain(
      'No distance unit match [parsec]',
    );
    expect(await query({ geo_distance: { distance: '1km', elsewhere: center } })).toBe(
      '400 failed to create query: failed to find geo field [elsewhere]',
    );
    expect(await query({ geo_distance: { distance: '1km', n: center } })).toBe(
      '400 failed to create query: Field [n] is of unsupported type [integer] for [geo_distance] query',
    );
    expect(await query({ geo_bounding_box: { place: { top: 1, left: 0, bottom: 2, right: 1 } } })).toBe(
      '400 top is below bottom corner: 1.0 vs. 2.0',
    );
    expect(await found({ geo_distance: { distance: '1km', elsewhere: center, ignore_unmapped: true } })).toEqual([]);
    expect(await refused('/shops/_search', { sort: ['place'] })).toContain("can't sort on geo_point field");
    const flat = { top: 1, left: 0, bottom: 1, right: 1 };
    expect(await query({ geo_bounding_box: { place: flat } })).toBe('400 top cannot be the same as bottom: 1.0 == 1.0');
    const round = {
      geo_bounding_box: { place: { top: 90, left: 0, bottom: -90, right: 360 }, validation_method: 'COERCE' },
    };
    expect((await found(round)).length).toBe(places.filter((of) => of.length > 0).length);
    const coerced = { distance: '20100km', place: { lat: 100, lon: 0 }, validation_method: 'COERCE' };
    expect((await found({ geo_distance: coerced })).length).toBe(places.filter((of) => of.length > 0).length);
  });
});
