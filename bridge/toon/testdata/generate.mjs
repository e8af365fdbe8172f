// Writes cases.json, the golden file of toon_test.go, with the reference
// encoder. In this folder: npm install --no-save @toon-format/toon@4.4.0 &&
// node generate.mjs
import { readFileSync, writeFileSync } from 'node:fs'
import { encode } from '@toon-format/toon'

const reference = JSON.parse(
  readFileSync(new URL('./node_modules/@toon-format/toon/package.json', import.meta.url)))

const groups = {
  primitive: [null, true, false, 0, 1, -1, 42, 1.5, -0.25, 0.1, 1e6, 1e-6, 1e-7, 1.5e-9,
    123456.789, 1e20, 1e21, -2.5e22, 5e-324, 1.7976931348623157e308, 9007199254740991],
  string: ['', ' ', ' x', 'x ', 'x y', '\tx', 'x\t', 'true', 'false', 'null', 'True', 'NULL', 'nil',
    'NaN', 'Infinity', '42', '-3.14', '05', '+1', '1e-6', '1E5', '1e+5', '1e', '1.', '.5', '0x10',
    '1_000', '1.5.2', '1,000', '+', '-', '--', '-a', 'a-b', '- item', '#', '#a', 'a#b', 'a:b', 'a: b',
    'a,b', 'a|b', 'a;b', 'a"b', "a'b", 'a\\b', '[x]', '[]', '{}', '{x', 'x}', '(x)', 'a\nb', 'a\rb',
    'a\tb', '\u0000', 'a\u0001b', '\u000b', '\u001f', '\u007f', '\u0085', '\u00a0x', 'x\u00a0', '\u2003x',
    '\u2028', 'é', '日本語', '😀', 'a 😀 b', '\ufeffa', 'a\ufeff', '\ufeff', '１２', '١', 'https://x.org/?q=1',
    '2026-11-24T09:00:00Z', '2026-11-24', '50%', '@home', '*', '&a', '!b', '`c`', '<d>', '~', '\\', '"', 'a  b'],
  key: ['', 'a', '_', '_x1', 'A.b', '.a', 'a.', '1', '1a', 'a b', ' a', 'a-b', '-a', 'é', 'ключ', 'a:b', 'a,b',
    'a"b', 'a\\b', '[a]', '{a}', '#a', 'a\nb', 'a\u0001', '\ufeff', 'true', 'null', '__proto__', 'constructor']
    .flatMap(k => [object([[k, 1]]), object([['o', object([[k, object([['x', 's']])]])], ['t', [object([[k, 1]])]]])]),
  object: [{}, { a: {} }, { a: { b: {} } }, { a: 1, b: 'x', c: null, d: true }, { a: { b: { c: 1 }, d: 2 }, e: 3 },
    { a: [] }, { a: { b: [] }, c: {} }, { text: 'a,b: c' }, { b: 1, a: 2 }, { a: 'line one\nline two' }],
  inline: [[], [1], [1, 2, 3], ['a', 'b,c', ''], [true, null, 'null', -0.5], { k: ['x y', ' z', 'a:b'] },
    { k: [''] }, { 'k k': [1] }, ['-', '#', '[]'], ['\ufeffa', 'b']],
  table: [[{ a: 1 }], [{ a: 1, b: 'x' }, { a: 2, b: 'y,z' }], { r: [{ a: 1, b: 2 }, { b: 4, a: 3 }] },
    { r: [{ a: 1 }, { a: null }] }, { r: [{ a: 1 }, { b: 1 }] }, { r: [{ a: 1 }, { a: 1, b: 2 }] }, { r: [{}, {}] },
    { r: [{ a: 1 }, {}] }, { r: [{ a: [1] }, { a: [2] }] }, { r: [{ a: {} }, { a: {} }] }, { r: [{ a: 1 }, 2] },
    { r: [{ 'a b': 1, 'c,d': 2 }, { 'a b': 3, 'c,d': 4 }] }, { r: [{ a: '', b: ':' }, { a: '-', b: '1' }] },
    { r: [{ a: 1, g: { x: 1, y: 2 } }, { g: { y: 4, x: 3 }, a: 2 }] }, { r: [{ g: { h: { i: 1 } } }, { g: { h: { i: 2 } } }] },
    { r: [{ g: { x: 1 } }, { g: null }] }, { r: [{ g: { x: 1 } }, { g: { y: 1 } }] }, { r: [{ g: { x: [] } }] },
    { r: [{ 'g g': { 'x x': 1 }, z: 2 }] }, [{ g: { x: 1 }, a: 1 }, { g: { x: 2 }, a: 2 }]],
  keyed: [{ a: { x: 1 }, b: { x: 2 } }, { m: { a: { x: 1, y: 2 }, b: { y: 3, x: 4 } } }, { m: { only: { x: 1 } } },
    { m: { a: { x: 1 }, b: 2 } }, { m: { a: { x: 1 }, b: {} } }, { m: { a: { x: [1] }, b: { x: [2] } } },
    { m: { 'a b': { v: 'x,y' }, '7': { v: 'z' } } }, { m: { a: { g: { x: 1 } }, b: { g: { x: 2 } } } },
    { o: { m: { a: { x: 1 }, b: { x: 2 } }, n: 1 } }, [{ m: { a: { x: 1 }, b: { x: 2 } }, n: 1 }, { n: 2 }],
    [{ a: { x: 1 }, b: { x: 2 } }, 5], [{ a: { x: 1 }, b: { x: 2 } }], { a: { x: { p: 1 } }, b: { x: { q: 1 } } }],
  list: [[[]], [[], []], [[1, 2], [3]], [['a', 'b,c'], []], [[[1]], [2]], [{}], [{}, { a: 1 }], [1, [2], { a: 3 }, null],
    [[{ a: 1 }, { a: 2 }]], [[{ a: 1 }], [{ a: 2 }, 3]], [{ a: [{ x: 1 }, { x: 2 }], b: 1 }, 0], [{ a: [1, 2], b: 3 }],
    [{ a: [[1], [2]], b: { c: 1 } }], [{ a: {}, b: 1 }, 0], [{ a: { b: { c: 1 } }, d: 2 }, 0], [{ a: [] }, 0],
    [{ a: [1, { b: 2 }] }], { l: [{ l: [{ l: [1, {}] }, 0] }, 0] }, ['x', { 'k k': 'v' }], [null, [null], [[null]]],
    { l: ['- a', ['- b'], { c: '- d' }] }],
  result: [
    { status: 'success', summary: 'ran in 12 ms', exitCode: 0, stdout: ['a', '  b', ''], result: "{'x': 1}" },
    { status: 'error', exitCode: 1, stderr: ['Traceback (most recent call last):', '  File "<run_python>", line 3', 'KeyError: 1'] },
    { users: [{ id: 1, name: 'Ada', tags: ['x'] }, { id: 2, name: 'Linus', tags: [] }], next: null },
    { location: { city: 'Berlin' }, alerts: ['frost', 'wind'], forecast: [{ day: 'Mon', temp: { min: -2, max: 4 } }, { day: 'Tue', temp: { min: 1, max: 7 } }] },
  ],
}

// object makes every key an own property, also __proto__.
function object(fields) {
  return JSON.parse(`{${fields.map(([k, v]) => `${JSON.stringify(k)}:${JSON.stringify(v)}`).join(',')}}`)
}

// mulberry32, a small seeded generator, so that the file is reproducible.
function random(seed) {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296
  }
}

function randomValue(rand, depth) {
  const pick = list => list[Math.floor(rand() * list.length)]
  const count = () => Math.floor(rand() * 4)
  const many = make => Array.from({ length: count() }, make)
  const leaf = () => pick([() => pick(groups.primitive), () => pick(groups.string), () => Math.floor(rand() * 100)])()
  const key = () => pick(['id', 'name', 'x', 'y', 'a b', 'z-1', 'k.v', '9', 'note'])
  const value = d => randomValue(rand, d)
  if (depth <= 0) return leaf()
  // Uniform rows, sometimes with one spoilt, exercise the choice of the form.
  const rows = () => {
    const keys = [...new Set(many(key))]
    const nested = rand() < 0.3
    return Array.from({ length: 1 + count() }, () => {
      const row = object(keys.map(k => [k, leaf()]))
      if (nested) row.g = { p: leaf(), q: leaf() }
      if (rand() < 0.1) row[key()] = value(depth - 1)
      return row
    })
  }
  return pick([
    leaf,
    () => many(leaf),
    () => many(() => value(depth - 1)),
    () => object(many(key).map(k => [k, value(depth - 1)])),
    () => object(many(key).map(k => [k, value(depth - 1)])),
    rows,
    () => object(rows().map((row, i) => [`r${i}`, row])),
  ])()
}

groups.random = Array.from({ length: 300 }, (_, i) => randomValue(random(i + 1), 1 + (i % 5)))

// What is encoded is always an object.
const fields = v => v === null || typeof v !== 'object' || Array.isArray(v) ? { v } : v

const cases = Object.entries(groups).flatMap(([group, values]) =>
  values.map(fields).map((json, i) => ({ name: `${group}/${i}`, json, toon: encode(json) })))
const lines = cases.map(c => '    ' + JSON.stringify(c))
writeFileSync(new URL('./cases.json', import.meta.url),
  `{\n  "reference": ${JSON.stringify(`${reference.name} ${reference.version}`)},\n  "cases": [\n${lines.join(',\n')}\n  ]\n}\n`)
console.log(`${cases.length} cases`)
