// Copies a layer into HOME, lets npm run the install scripts of its packages there, and leaves nothing else,
// for others to read.
//
// It runs in a sandbox of its own. What npm and the scripts say is its standard error.
'use strict'
const fs = require('node:fs')
const path = require('node:path')
const [cli, layer, ...packages] = process.argv.slice(1)
const home = process.env.HOME
process.umask(0o022)
process.chdir(home)
fs.cpSync(path.join(layer, 'node_modules'), 'node_modules', { recursive: true, verbatimSymlinks: true })
fs.writeFileSync('package.json', '{"private":true}')
fs.mkdirSync('.tmp')
const env = { ...process.env, TMPDIR: path.join(home, '.tmp') } // where programs can run, unlike in /tmp
const prefix = path.dirname(path.dirname(process.execPath))
if (fs.existsSync(path.join(prefix, 'include/node/node.h'))) env.npm_config_nodedir = prefix // and node-gyp fetches none
const args = [cli, 'rebuild', '--foreground-scripts', '--no-audit', '--no-fund', '--no-progress', '--no-color', '--no-update-notifier',
  '--userconfig=no-user', '--globalconfig=no-global', '--logs-max=0', '--loglevel=error']

const optional = 'optional:'
const needed = packages.filter(name => !name.startsWith(optional))
process.exitCode = rebuild(['--ignore-scripts']) // which makes node_modules/.bin for them
if (!process.exitCode && needed.length > 0) process.exitCode = rebuild(['--', ...needed])
if (!process.exitCode) {
  for (const name of packages) {
    if (name.startsWith(optional)) rebuild(['--', name.slice(optional.length)])
  }
  clean()
  share(home)
}

// rebuild has npm do what it does once packages are in place, and returns its exit code.
function rebuild(more) {
  const npm = require('node:child_process').spawnSync(process.execPath, [...args, ...more], { env, stdio: ['ignore', 2, 2] })
  if (npm.error) throw npm.error
  return npm.status ?? 1
}

// clean removes what is beside the packages: caches, and what scripts have left.
function clean() {
  for (const name of fs.readdirSync('.')) {
    if (name !== 'node_modules') fs.rmSync(name, { recursive: true, force: true })
  }
}

// share lets all users read what is in a folder.
function share(dir) {
  fs.chmodSync(dir, 0o755)
  for (const entry of fs.readdirSync(dir, { withFileTypes: true })) {
    const file = path.join(dir, entry.name)
    if (entry.isDirectory()) share(file)
    else if (entry.isFile()) fs.chmodSync(file, fs.statSync(file).mode & 0o111 ? 0o755 : 0o644)
  }
}
