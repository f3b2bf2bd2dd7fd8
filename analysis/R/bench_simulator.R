# The benchmark of the simulated machine (experiments/bench/simulator.sh): what a simulated run costs beside cachegrind's of the
# same program, in the same round.

SIMULATOR_BENCH_COLUMNS <- c("round", "what", "threads", "wall_ns", "cpu_ns", "rss_kib")

#' A product of costs, paired by round.
#' @param rows of simulator.csv
#' @param sides list of list(what, threads, power): a factor each
#' @param column wall_ns or cpu_ns
#' @return as median_interval
simulator_product <- function(rows, sides, column) {
  logs <- lapply(sides, function(side) {
    own <- rows[rows$what == side$what & rows$threads == side$threads, , drop = FALSE]
    stats::setNames(side$power * log(own[[column]]), own$round)
  })
  rounds <- Reduce(intersect, lapply(logs, names))
  interval <- median_interval(Reduce(`+`, lapply(logs, `[`, rounds)))
  interval[c("value", "low", "high")] <- exp(interval[c("value", "low", "high")])
  interval
}

#' A mode's cost to cachegrind's with so many threads, as factors of simulator_product; inverted by power -1.
simulator_to_cachegrind <- function(mode, threads, power = 1) {
  list(list(what = mode, threads = threads, power = power), list(what = "cachegrind", threads = threads, power = -power))
}

#' All figures, as figure_line makes them.
#' @param rows of simulator.csv
#' @param targets of simulator-targets.csv
simulator_figures <- function(rows, targets) {
  cells <- expand.grid(threads = c(8, 64), mode = c("weave", "timed"), stringsAsFactors = FALSE)
  against <- function(column, word) {
    do.call(rbind, Map(function(mode, threads) {
      figure_line(sprintf("%s.%s.%d", sub("_ns", "", column), mode, threads),
                  sprintf("%s of %s mode, %d threads, to cachegrind's", word, mode, threads),
                  simulator_product(rows, simulator_to_cachegrind(mode, threads), column), "", targets)
    }, cells$mode, cells$threads))
  }
  # A run of more threads makes more accesses: to begin and to end them, and in live sets of their own.
  growth <- figure_line("wall.growth", "wall time of weave mode to cachegrind's: 64 threads to 8",
                        simulator_product(rows, c(simulator_to_cachegrind("weave", 64), simulator_to_cachegrind("weave", 8, -1)),
                                          "wall_ns"), "", targets)
  largest <- function(mode) {
    own <- rows$rss_kib[rows$what == mode & rows$threads == 64]
    figure_line(sprintf("memory.%s.64", mode), sprintf("largest resident size of %s mode, 64 cores", mode),
                counted(if (length(own) == 0) NA else max(own) / 1024), "MiB", targets)
  }
  rbind(against("wall_ns", "wall time"), against("cpu_ns", "CPU time"), growth, largest("weave"), largest("timed"))
}

#' The page: figures, and where they come from.
simulator_page <- function(figures, bench) {
  meta <- file.path(bench, "simulator.meta")
  from <- if (file.exists(meta)) {
    m <- read_part_meta(meta)
    paste0("Measured by `make bench-sim`: commit ", m$commit, "; ", m$date, "; ", m$processor, ", ", m$cpus, " CPUs, ", m$kernel,
           ", load ", m$load, " at the start. n is rounds.")
  }
  c(figures_markdown(figures), "", from)
}
