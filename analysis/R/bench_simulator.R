# The benchmark of the simulated machine (experiments/bench/simulator.sh): what a simulated run costs beside cachegrind's of the
# same program, in the same round.

SIMULATOR_BENCH_COLUMNS <- c("round", "what", "threads", "wall_ns", "cpu_ns", "rss_kib")

#' Ratio of two commands' costs, paired by round.
#' @param rows of simulator.csv
#' @param above,below list(what, threads)
#' @param column wall_ns or cpu_ns
#' @return as median_interval
simulator_ratio <- function(rows, above, below, column) {
  of <- function(side) {
    own <- rows[rows$what == side$what & rows$threads == side$threads, , drop = FALSE]
    stats::setNames(own[[column]], own$round)
  }
  a <- of(above)
  b <- of(below)
  both <- intersect(names(a), names(b))
  interval <- median_interval(log(a[both] / b[both]))
  interval[c("value", "low", "high")] <- exp(interval[c("value", "low", "high")])
  interval
}

#' How a mode's cost grows from 8 threads to 64, each beside cachegrind's of that round: a run of more threads makes more
#' accesses, to begin and to end them and in live sets of their own.
#' @param rows of simulator.csv
#' @return as median_interval
simulator_growth <- function(rows, mode, column) {
  of <- function(what, threads) {
    own <- rows[rows$what == what & rows$threads == threads, , drop = FALSE]
    stats::setNames(own[[column]], own$round)
  }
  parts <- list(of(mode, 64), of("cachegrind", 64), of(mode, 8), of("cachegrind", 8))
  rounds <- Reduce(intersect, lapply(parts, names))
  parts <- lapply(parts, function(part) log(part[rounds]))
  interval <- median_interval(parts[[1]] - parts[[2]] - parts[[3]] + parts[[4]])
  interval[c("value", "low", "high")] <- exp(interval[c("value", "low", "high")])
  interval
}

#' All figures, as figure_line makes them.
#' @param rows of simulator.csv
#' @param targets of simulator-targets.csv
simulator_figures <- function(rows, targets) {
  side <- function(what, threads) list(what = what, threads = threads)
  cells <- expand.grid(threads = c(8, 64), mode = c("weave", "timed"), stringsAsFactors = FALSE)
  against <- function(column, word) {
    do.call(rbind, Map(function(mode, threads) {
      figure_line(sprintf("%s.%s.%d", sub("_ns", "", column), mode, threads),
                  sprintf("%s of %s mode, %d threads, to cachegrind's", word, mode, threads),
                  simulator_ratio(rows, side(mode, threads), side("cachegrind", threads), column), "", targets)
    }, cells$mode, cells$threads))
  }
  growth <- figure_line("wall.growth", "wall time of weave mode to cachegrind's: 64 threads to 8",
                        simulator_growth(rows, "weave", "wall_ns"), "", targets)
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
