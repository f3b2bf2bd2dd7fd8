#!/bin/sh
# compiles and runs C++: operator new, containers, exceptions, threads
# needs: g++
# size: short
cat >t.cc <<'CC'
#include <cstdio>
#include <map>
#include <new>
#include <string>
#include <thread>
#include <vector>
struct alignas(128) Wide { char bytes[128]; };
int main() {
  std::map<std::string, std::vector<int>> m;
  for (int i = 0; i < 50000; i++) m[std::to_string(i % 999)].push_back(i);
  std::vector<std::thread> threads;
  for (int k = 0; k < 4; k++)
    threads.emplace_back([k] { std::vector<std::string> v; for (int i = 0; i < 20000; i++) v.emplace_back(i % 300, 'a' + k); });
  for (auto &t : threads) t.join();
  bool thrown = false;
  try { volatile size_t n = size_t(1) << 62; delete[] new char[n]; } catch (const std::bad_alloc &) { thrown = true; }
  Wide *w = new Wide[10];
  bool aligned = reinterpret_cast<size_t>(w) % 128 == 0;
  delete[] w;
  std::printf("%zu %d %d\n", m.size(), thrown, aligned);
}
CC
g++ -std=c++17 -O1 t.cc -o program -lpthread && ./program
