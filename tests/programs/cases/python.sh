#!/bin/sh
# json, re, hashlib, threads, a growing bytearray
# needs: /usr/bin/python3
# size: short
cat >t.py <<'PY'
import hashlib, json, os, re, threading
words = {}
for line in open(os.environ["LINES_FILE"]):
    a, b, c = line.split()
    words.setdefault(b, []).append(int(a))
text = json.dumps(words, sort_keys=True)
assert json.loads(text) == words
out = [None] * 4
def work(k):
    s = "".join(str(i * k) for i in range(20000))
    out[k] = hashlib.sha256(re.sub("7", "x" * (k + 1), s).encode()).hexdigest()
threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
[t.start() for t in threads]
[t.join() for t in threads]
big = bytearray()
for i in range(200000):
    big += b"0123456789"
print(hashlib.sha256(text.encode()).hexdigest(), out, len(big))
PY
# Python's own small-object allocator would hide most of it.
PYTHONMALLOC=malloc /usr/bin/python3 -S t.py
