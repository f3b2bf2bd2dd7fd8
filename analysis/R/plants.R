# Planted costs: each variant of tlfl breaks one thing, and has to show in that thing's term and in no other; tlfl itself in none.
#
# Each line is judged by itself, and once more (`together`) with intervals that all hold at once.
#
# The unit of a decision is the launch. A difference of two allocators is of launches paired by repetition, so that both had the
# same random numbers. "Absent" is no failure to see: the whole interval has to lie within a margin stated here.

PLANTED_COLUMNS <- c("world", "allocator", "n", "term", "unit", "value", "low", "high", "launches", "method", "margin", "planted",
                     "verdict", "together")

# What each variant plants, by term.
PLANTS <- c("tlfl-locked" = "lock", "tlfl-packed" = "lines_false", "tlfl-remote" = "lines_node")

# Terms that are looked at: cycles of the decomposition, and lines an op.
PLANT_TERMS <- c(metadata = "cycle", lock = "cycle", lines_false = "1/op", lines_node = "1/op")

# What a variant adds to another term by definition, and no fault of the estimator: taking and giving back a free lock is
# bookkeeping, C_lock is waiting and handing over.
EXPECTED <- c("tlfl-locked" = "metadata")

# Margin of absence: this share of what there is of the kind in tlfl, which has no plant: a plant must not widen the margin that
# it is judged by. Of cycles those of an op, of lines that move all that the private caches miss, of another node's memory all
# lines from memory.
ABSENT_SHARE <- 0.10

#' The margin of a term.
#' @param rows launches of tlfl at a thread count
absence_margin <- function(term, rows) {
  kind <- switch(term, lines_false = rows$l3_access / rows$ops, lines_node = rows$ev_dram, rows$cycles)
  ABSENT_SHARE * stats::median(kind)
}

#' Columns of the terms, of churn launches.
plant_values <- function(rows) {
  transform(rows, lines_false = ev_false, lines_node = ev_node)
}

#' One line: is a term there, absent, or open? "expected": over zero, where EXPECTED has the term.
#' @param rows launches of the variant, or tlfl's own
#' @param x differences (variant less tlfl, launches paired), or tlfl's own values
#' @param planted TRUE where the term is what was planted
plant_line <- function(allocator, n, term, rows, x, margin, planted, together) {
  interval <- launch_interval(rows, x, together)
  said <- if (is.na(interval$low)) paste("not judged: fewer than", least_of(interval), "launches")
          else if (interval$low > 0 && EXPECTED[allocator] %in% term) "expected"
          else if (interval$low > margin) "present"
          else if (interval$high < margin && interval$low > -margin) "absent"
          else "open"
  data.frame(world = "simulated", allocator = allocator, n = n, term = term, unit = PLANT_TERMS[[term]], value = interval$value,
             low = interval$low, high = interval$high, launches = interval$launches, method = interval$method, margin = margin,
             planted = planted, verdict = said)
}

#' All lines: each variant less tlfl, and tlfl itself.
#' @param rows churn launches with the terms of launch_terms, of tlfl and its variants; several threads
#' @param fast fastpath launches of one thread, for T_metadata
#' @param together how many intervals are to hold at once
plants_table <- function(rows, fast, together = 1) {
  rows <- plant_values(rows[rows$threads > 1, , drop = FALSE])
  base <- rows[rows$allocator == "tlfl", , drop = FALSE]
  if (nrow(base) == 0) return(NULL)
  counts <- sort(unique(base$threads))
  own <- do.call(rbind, lapply(counts, function(n) {
    at <- base[base$threads == n, , drop = FALSE]
    do.call(rbind, lapply(setdiff(names(PLANT_TERMS), "metadata"), function(term) {
      plant_line("tlfl", n, term, at, at[[term]], absence_margin(term, at), FALSE, together)
    }))
  }))
  rbind(own, do.call(rbind, lapply(intersect(names(PLANTS), rows$allocator), function(variant) {
    do.call(rbind, lapply(counts, function(n) plant_differences(variant, n, rows, fast, together)))
  })))
}

#' A variant's lines at n threads.
plant_differences <- function(variant, n, rows, fast, together) {
  at <- rows[rows$threads == n, , drop = FALSE]
  pairs <- function(rows) {
    a <- rows[rows$allocator == variant, , drop = FALSE]
    b <- rows[rows$allocator == "tlfl", , drop = FALSE]
    at <- pair_rows(a, b, c("threads", CELL_COLUMNS))
    list(a = a[at$a, , drop = FALSE], b = b[at$b, , drop = FALSE])
  }
  whole <- pairs(at)
  if (nrow(whole$a) == 0) return(NULL)
  do.call(rbind, lapply(names(PLANT_TERMS), function(term) {
    own <- if (term == "metadata") pairs(fast) else whole
    column <- if (term == "metadata") "cycles" else term
    plant_line(variant, n, term, own$a, own$a[[column]] - own$b[[column]], absence_margin(term, whole$b),
               PLANTS[[variant]] == term, together)
  }))
}

#' From results: the sweep that was made for it, else whatever has tlfl and a variant.
fit_plants <- function(results, cost) {
  timed <- timed_launches(results)
  rows <- timed[timed$kernel %in% c("churn", "fastpath") & allocator_family(timed$allocator) == "tlfl", , drop = FALSE]
  rows <- rows[!rows$folder %in% rows$folder[param_number(rows, "planted") %in% 1:16], , drop = FALSE]
  churn <- rows_of(rows, "churn", c("variants-sim", "model-sim"))
  if (nrow(churn) == 0) return(NULL)
  churn <- pick_slice(churn)
  fast <- rows_of(rows[rows$threads == 1, , drop = FALSE], "fastpath", c("variants-sim", "fastpath-sim"))
  churn <- cbind(churn, launch_terms(churn, 0, cost))
  each <- plants_table(churn, fast)
  if (is.null(each)) return(NULL)
  each$together <- plants_table(churn, fast, nrow(each))$verdict
  each
}
