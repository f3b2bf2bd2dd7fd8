# Runs that end when an interval is narrow enough. A run that looks at its intervals several times stops where they happen to
# be narrow, and the interval it stops with misses more often than it says. So the risk is shared among the looks: with at
# most `looks` of them, each at 1 - (1 - CONFIDENCE) / looks, all looks together miss no more often than one interval may,
# whichever of them the run stopped at (Bonferroni over the looks; for the problem see Jennison and Turnbull, "Group
# sequential methods", 2000, chapter 9).
#
# meta.json, as `ak run --ci-width` writes it: stopping = {rule, width, looks, confidence}; looks is the most that the plan
# allowed, confidence the level of the intervals that were looked at.

#' The level of intervals of a run.
#' @param meta of read_meta
#' @return CONFIDENCE where the run did not look; else the corrected one
run_confidence <- function(meta) {
  stopping <- meta$stopping
  if (length(stopping) == 0 || identical(stopping$rule, "none")) return(CONFIDENCE)
  looks <- if (is.numeric(stopping$looks)) max(1, stopping$looks) else 1
  used <- if (is.numeric(stopping$confidence) && stopping$confidence < 1) stopping$confidence else CONFIDENCE
  max(used, each_confidence(looks))
}

#' The level of intervals of rows: of several runs, the highest.
#' @param rows of read_results
confidence_of <- function(rows) max(CONFIDENCE, rows$confidence, na.rm = TRUE)
