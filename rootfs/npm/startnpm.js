// Starts npm with what comes over standard input: files to write, its arguments and its environment. Writes
// the lock that npm makes to standard output, and all that npm says to standard error.
//
// It runs in a sandbox. The proxy, which is in the environment, is known only when that has started.
'use strict'
const fs = require('node:fs')
const task = JSON.parse(fs.readFileSync(0, 'utf8'))
process.chdir(fs.mkdtempSync(require('node:os').tmpdir() + '/npm-'))
for (const [name, text] of Object.entries(task.files)) fs.writeFileSync(name, text)
const env = { ...task.env, HOME: process.cwd(), TMPDIR: process.cwd() }
const npm = require('node:child_process').spawnSync(process.execPath, task.args, { env, stdio: ['ignore', 2, 2] })
if (npm.error) throw npm.error
if (npm.status === 0) process.stdout.write(fs.readFileSync('package-lock.json'))
else process.exitCode = npm.status ?? 1
