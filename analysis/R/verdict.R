# Verdicts on published claims: rules from an interval of ours to a word. In order:
#   no rows                                      -> not yet measured (what it waits for), or not testable here (what it takes)
#   rows, but the metric is empty                -> not testable here (why); not yet measured where more samples would do
#   fewer launches than an interval needs        -> not yet measured (n<6)
#   the whole interval is where the claim says   -> reproduced; where a condition or the size differs: direction only
#   the interval excludes what was published     -> not reproduced
#   else                                         -> open: measured, but the interval holds both; more launches would tell
# The last three are one rule (decide) for every kind of claim: each says in which region the value lies, a ratio or difference
# also at which point of it. A reduced or oversubscribed condition, another version or program and the simulated machine are
# conditions that differ, and can never yield "reproduced". Over several cells (readings, live sets, sizes, thread counts) the
# weakest stands. Where the source's own arithmetic breaks, the claim is contradicted by its own numbers, whatever we measure.

VERDICTS <- c("reproduced", "direction only", "not reproduced", "open", "contradicted by its own numbers",
              "not testable here", "not yet measured")
# From strong to weak, for taking the weakest over cells. One that was measured and speaks against is final (weakest_verdict).
VERDICT_STRENGTH <- c("reproduced" = 1, "direction only" = 2, "not reproduced" = 3, "open" = 4, "not testable here" = 5,
                      "not yet measured" = 6)
MEASURED_VERDICTS <- c("reproduced", "direction only", "not reproduced", "open") # those that stand on an interval of ours
WAITING_VERDICTS <- c("not testable here", "not yet measured")

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

#' The rule for every kind of claim but a count, which has no interval. A claim is met where the whole interval lies in its
#' region, and refuted where the interval excludes it: lies outside the region as a whole, or holds its edge (no direction is
#' shown) and not the published point. What is neither is open: the interval holds both.
#' @param region c(from, to) of the values that the claim allows; -Inf or Inf where it has no edge there
#' @param strict is a value at the edge outside (no effect at all), or within (a margin, a bound)?
#' @param words c(met =, against =, open =) in notes
#' @param published the point, where the claim asserts a size; an interval in the region that excludes it is of another size
decide <- function(region, strict, interval, conditions, words, published = NA) {
  above <- interval$low > region[1] || (!strict && interval$low == region[1]) || region[1] == -Inf
  below <- interval$high < region[2] || (!strict && interval$high == region[2]) || region[2] == Inf
  outside <- interval$high < region[1] || interval$low > region[2] ||
    (strict && (interval$high == region[1] || interval$low == region[2]))
  held <- is.na(published) || (interval$low <= published + ROUNDING && published - ROUNDING <= interval$high)
  if (above && below && held) return(met(conditions, words[["met"]]))
  if (above && below) return(answer("direction only", note_text("another size", conditions)))
  if (outside) return(answer("not reproduced", note_text(words[["against"]], conditions)))
  if (!held) return(answer("not reproduced", note_text("no direction is shown, and the interval excludes the published size",
                                                       conditions)))
  answer("open", note_text(paste0(words[["open"]], "; more launches would tell"), conditions))
}

#' The values on one side of an edge.
side_of <- function(edge, up) if (up) c(edge, Inf) else c(-Inf, edge)

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
  words <- c(met = "size agrees", against = "the opposite direction",
             open = "the interval holds both no effect and the published one")
  decide(side_of(neutral, published > neutral), TRUE, interval, conditions, words, published)
}

#' Verdict on an order: the sign of a paired difference. It asserts no size, so that none can be excluded.
#' @param direction "up" or "down"
verdict_order <- function(direction, interval, conditions = character(), unmeasured = NA, word = "not testable here") {
  missing <- missing_interval(interval, unmeasured, word)
  if (!is.null(missing)) return(missing)
  words <- c(met = "the order agrees", against = "the opposite order", open = "the interval holds both orders")
  decide(side_of(0, direction == "up"), TRUE, interval, conditions, words)
}

#' Verdict on an equivalence: two one-sided tests place the ratio within the margin of 1.
#' @param interval from equivalence(): of the ratio, at the confidence of two one-sided tests
#' @param margin relative: the ratio may lie from 1 / (1 + margin) to 1 + margin
verdict_equivalence <- function(margin, interval, conditions = character(), unmeasured = NA, word = "not testable here") {
  missing <- missing_interval(interval, unmeasured, word)
  if (!is.null(missing)) return(missing)
  words <- c(met = paste("equal within", percent_text(margin)), against = paste("differs by more than", percent_text(margin)),
             open = paste("the interval reaches beyond", percent_text(margin)))
  decide(c(1 / (1 + margin), 1 + margin), FALSE, interval, conditions, words)
}

#' Verdict on a bound.
#' @param limit with the margin in it
#' @param direction "least" or "most"
verdict_bound <- function(limit, direction, interval, conditions = character(), unmeasured = NA, word = "not testable here") {
  missing <- missing_interval(interval, unmeasured, word)
  if (!is.null(missing)) return(missing)
  words <- c(met = "within the bound", against = "beyond the bound", open = "the interval holds the bound")
  decide(side_of(limit, direction == "least"), FALSE, interval, conditions, words)
}

#' Verdict on a rule in one program: it gains exactly where its share is above the limit.
#' @param share of the program, under the allocator that it has
#' @param interval of time with the other allocator over time with this one
#' @param margin relative: what is less is no gain, so that its absence can be shown
verdict_decision <- function(limit, share, margin, interval, conditions = character(), unmeasured = NA,
                             word = "not testable here") {
  missing <- missing_interval(interval, unmeasured, word)
  if (!is.null(missing)) return(missing)
  if (is.na(share)) return(answer("not yet measured", "the share in malloc and free was not measured"))
  gains <- share >= limit
  at <- paste0(" at a share of ", percent_text(share))
  words <- c(met = "the rule agrees", against = paste0(if (gains) "does not gain" else "gains", at),
             open = paste0("the interval holds both a gain and none", at))
  edge <- 1 / (1 + margin)
  decide(side_of(edge, !gains), gains, interval, conditions, words)
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
