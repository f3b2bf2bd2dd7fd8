#!/bin/sh
# workers, JSON, compression, hashes, buffers
# needs: node
# size: short
cat >t.js <<'JS'
const { Worker, isMainThread, parentPort, workerData } = require('worker_threads')
const crypto = require('crypto'), zlib = require('zlib'), fs = require('fs')
function work(k, rounds) {
  const hash = crypto.createHash('sha256')
  for (let i = 0; i < rounds; i++) {
    const text = JSON.stringify(Array.from({ length: 300 }, (_, j) => ({ id: i * j, name: 'n' + (j * k) })))
    const packed = zlib.deflateSync(Buffer.from(text))
    if (zlib.inflateSync(packed).toString() !== text) throw new Error('expanded to something else')
    hash.update(packed)
  }
  return hash.digest('hex')
}
const rounds = process.env.FULL ? 2000 : 150
if (isMainThread) {
  const lines = fs.readFileSync(process.env.LINES_FILE, 'utf8').split('\n')
  console.log(lines.length, crypto.createHash('sha1').update(lines.sort().join('\n')).digest('hex'))
  const buffers = []
  for (let i = 1; i < 2000; i++) buffers.push(Buffer.alloc(i * 37, i))
  console.log(Buffer.concat(buffers).reduce((a, b) => (a * 31 + b) % 1000003, 0))
  Promise.all([1, 2, 3, 4].map((k) => new Promise((done, bad) => {
    new Worker(__filename, { workerData: k }).on('message', done).on('error', bad)
  }))).then((all) => console.log(all.join('\n')))
} else {
  parentPort.postMessage(work(workerData, rounds))
}
JS
node t.js
