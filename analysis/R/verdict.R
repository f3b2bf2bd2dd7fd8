# Verdicts on published claims: rules from an interval of ours to a word. In order:
#   no rows                                      -> not yet measured (what it waits for), or not testable here (what it takes)
#   rows, but the metric is empty                -> not testable here (why); not yet measured where more samples would do
#   fewer launches than an interval needs        -> not yet measured (n<6)
#   the data speak against the claim             -> not reproduced: a tie, the other direction, a bound or margin that the
#                                                   whole interval lies beyond, another count
#   the interval lies on both sides of a bound   -> not yet measured: more launches would tell
#   or a margin
#   the claim is met, and every condition too    -> reproduced
#   else                                         -> direction only, with the conditions that differ
# A reduced or oversubscribed condition, another version or program and the simulated machine are conditions that differ,
# and can never yield "reproduced". Over several cells (readings, live sets, sizes, thread counts) the weakest stands. Where
# the source's own arithmetic breaks, the claim is contradicted by its own numbers, whatever we measure.

VERDICTS <- c("reproduced", "direction only", "not reproduced", "contradicted by its own numbers",
              "not testable here", "not yet measured")
# From strong to weak, for taking the weakest over cells. One that was measured and speaks against is final (weakest_verdict).
VERDICT_STRENGTH <- c("reproduced" = 1, "direction only" = 2, "not reproduced" = 3, "not testable here" = 4,
                      "not yet measured" = 5)

ROUNDING <- 1e-9 # of a published effect, which is computed from decimals

answer <- function(verdict, note = "") list(verdict = verdict, note = note)

#' Join the phrases of a note.
note_text <- function(...) {
  parts <- c(...)
  paste(parts[!is.na(parts) & nzchar(parts)], collapse = "; ")
}

#' What every rule asks first: is there an interval at all?
#' @param unmeasured why the metric is empty on rows that exist; NA where it is not
#' @param word the verdict that goes with `unmeasured`
#' @return an answer, or NULL where the rule may decide
missing_interval <- function(interval, unmeasured, word) {
  if (!is.na(unmeasured)) return(answer(word, unmeasured))
  if (is.null(interval) || interval$launches == 0) return(answer("not yet measured", "no paired launches"))
  if (is.na(interval$low)) {
    paired <- if (isFALSE(interval$paired)) "launch" else "paired launch"
    return(answer("not yet measured", paste0(plural(interval$launches, paired, paste0(paired, "es")), ", fewer than ",
                                             least_of(interval))))
  }
}

#' A claim that is met: reproduced where no condition differs.
met <- function(conditions, agrees) {
  if (length(conditions) == 0) return(answer("reproduced"))
  answer("direction only", paste0(agrees, " too, but ", paste(conditions, collapse = "; ")))
}

#' Verdict on a published ratio, or on a difference (neutral = 0).
#' @param published the effect as published
#' @param interval of ours; NULL where there are no rows
#' @param conditions character: what differs from the published conditions (empty: nothing)
#' @param neutral the value of no effect
#' @return list(verdict, note)
verdict_ratio <- function(published, interval, conditions = character(), unmeasured = NA, word = "not testable here",
                          neutral = 1) {
  missing <- missing_interval(interval, unmeasured, word)
  if (!is.null(missing)) return(missing)
  if (interval$low <= neutral && interval$high >= neutral) {
    return(answer("not reproduced", note_text("tie within the interval", conditions)))
  }
  if ((interval$value > neutral) != (published > neutral)) {
    return(answer("not reproduced", note_text("the opposite direction", conditions)))
  }
  if (interval$low <= published + ROUNDING && published - ROUNDING <= interval$high) return(met(conditions, "size agrees"))
  answer("direction only", note_text("another size", conditions))
}

#' Verdict on an order: the sign of a paired difference.
#' @param direction "up" or "down"
verdict_order <- function(direction, interval, conditions = character(), unmeasured = NA, word = "not testable here") {
  missing <- missing_interval(interval, unmeasured, word)
  if (!is.null(missing)) return(missing)
  if (interval$low <= 0 && interval$high >= 0) {
    return(answer("not reproduced", note_text("tie within the interval", conditions)))
  }
  if ((interval$value > 0) != (direction == "up")) {
    return(answer("not reproduced", note_text("the opposite order", conditions)))
  }
  met(conditions, "the order agrees")
}

#' Verdict on an equivalence: two one-sided tests place the ratio within the margin of 1.
#' @param interval from equivalence(): of the ratio, at the confidence of two one-sided tests
#' @param margin relative: the ratio may lie from 1 / (1 + margin) to 1 + margin
verdict_equivalence <- function(margin, interval, conditions = character(), unmeasured = NA, word = "not testable here") {
  missing <- missing_interval(interval, unmeasured, word)
  if (!is.null(missing)) return(missing)
  within <- c(1 / (1 + margin), 1 + margin)
  if (interval$low > within[2] || interval$high < within[1]) {
    return(answer("not reproduced", note_text(paste0("differs by more than ", percent_text(margin)), conditions)))
  }
  if (interval$low >= within[1] && interval$high <= within[2]) {
    return(met(conditions, paste("equal within", percent_text(margin))))
  }
  answer("not yet measured", note_text(paste0("open: the interval reaches beyond ", percent_text(margin),
                                              "; more launches would tell"), conditions))
}

#' Verdict on a bound.
#' @param limit with the margin in it
#' @param direction "least" or "most"
verdict_bound <- function(limit, direction, interval, conditions = character(), unmeasured = NA, word = "not testable here") {
  missing <- missing_interval(interval, unmeasured, word)
  if (!is.null(missing)) return(missing)
  least <- direction == "least"
  if (if (least) interval$low >= limit else interval$high <= limit) return(met(conditions, "within the bound"))
  if (if (least) interval$high < limit else interval$low > limit) {
    return(answer("not reproduced", note_text("beyond the bound", conditions)))
  }
  answer("not yet measured", note_text("open: the interval holds the bound; more launches would tell", conditions))
}

#' Verdict on a count: every launch has to have it. A count is no sample, so no interval is asked for.
#' @param values of the launches
verdict_count <- function(published, values, conditions = character(), unmeasured = NA, word = "not testable here") {
  if (!is.na(unmeasured)) return(answer(word, unmeasured))
  values <- values[is.finite(values)]
  if (length(values) == 0) return(answer("not yet measured", "no launches"))
  if (all(values == published)) return(met(conditions, "the count agrees"))
  answer("not reproduced", note_text(paste(and_list(count_text(sort(unique(values)))), "instead of", count_text(published)),
                                     conditions))
}

percent_text <- function(x) paste(number_text(100 * x, 2), "%")

#' The weakest of several verdicts.
weakest_verdict <- function(verdicts) {
  if ("not reproduced" %in% verdicts) return("not reproduced")
  verdicts[which.max(VERDICT_STRENGTH[verdicts])]
}
