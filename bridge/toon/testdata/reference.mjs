// Answers for TestTOONOfGeneratedValues: reads lines of JSON, each a value, or a
// list of a value and its TOON if "decode" is given, and writes for each one the
// TOON that the reference encoder makes of it, or whether the reference decoder
// gives the value back. The first argument is the folder that npm has filled.
import { createRequire } from 'node:module'
import { createInterface } from 'node:readline'
import { isDeepStrictEqual } from 'node:util'
import { pathToFileURL } from 'node:url'

const require = createRequire(process.argv[2] + '/')
const { encode, decode } = await import(pathToFileURL(require.resolve('@toon-format/toon')))

for await (const line of createInterface({ input: process.stdin })) {
  const value = JSON.parse(line)
  if (process.argv[3] !== 'decode') {
    console.log(JSON.stringify(encode(value)))
    continue
  }
  const [json, toon] = value
  // JSON has a -0, which TOON has not (§2).
  const want = JSON.parse(JSON.stringify(json))
  console.log(JSON.stringify(isDeepStrictEqual(JSON.parse(JSON.stringify(decode(toon))), want)))
}
