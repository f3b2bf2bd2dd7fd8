/* empty - a library with nothing in it: what preloading costs by itself. */
const int bench_empty = 0;
