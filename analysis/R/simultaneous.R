# Many intervals or tests at once: how sure one is of all of them together.
#
# Intervals share the risk evenly (Bonferroni), whatever they have in common: each of m is at 1 - (1 - confidence) / m. From
# three on, such levels are beyond what BOOT_RESAMPLES draws can tell, so the intervals are of exact order statistics, and many
# cells take more launches: 10 for 20 cells, 12 for 100. Tests are corrected by Holm's steps ("A simple sequentially rejective
# multiple test procedure", 1979), which reject whatever Bonferroni does, and more.

#' The level of each of m intervals, so that all of them hold with `confidence`.
each_confidence <- function(m, confidence = CONFIDENCE) 1 - (1 - confidence) / max(1, m)

#' Intervals of many sets that hold together.
#' @param sets list; what is empty or has nothing finite counts for nothing
#' @param interval function(set, confidence = ) -> as median_interval
#' @return data.frame, a line a set, with `together`: how many hold at once
simultaneous_intervals <- function(sets, interval = median_interval, confidence = CONFIDENCE) {
  m <- sum(vapply(sets, function(set) any(is.finite(unlist(set))), TRUE))
  out <- do.call(rbind, lapply(unname(sets), interval, confidence = each_confidence(m, confidence)))
  if (!is.null(out)) out$together <- rep(m, nrow(out))
  out
}

#' P-values corrected for being many; NA (not tested) counts for nothing.
holm <- function(p) stats::p.adjust(p, "holm")

#' What a caption says of its intervals.
simultaneous_text <- function(m, confidence = CONFIDENCE) {
  level <- paste(format(100 * confidence), "%")
  if (m < 2) return(paste(level, "interval"))
  paste0("all ", m, " intervals together hold with ", level, ", each is at ",
         format(100 * each_confidence(m, confidence), digits = 6), " % (Bonferroni)")
}

#' Whether an interval that holds together with others lies beside a value: NA where there are too few launches for it.
apart_from <- function(interval, value) interval$low > value | interval$high < value

# The mark of a ratio that differs from 1 also where all ratios of its table hold together.
apart_mark <- function(apart) ifelse(apart %in% TRUE, "$^{\\S}$", "")

#' What a caption says of many ratios: each interval is by itself, and which differ from 1 together.
#' @param ratios data.frame with low, launches, apart: one a cell of the table
together_sentence <- function(ratios, confidence = CONFIDENCE) {
  ratios <- ratios[is.finite(ratios$low), , drop = FALSE]
  m <- nrow(ratios)
  if (m < 2) return(NULL)
  each <- each_confidence(m, confidence)
  if (all(is.na(ratios$apart))) {
    return(sprintf("Each interval is by itself: for all %s to hold together at %s, each takes %s.", count_text(m),
                   percent_tex(confidence, 2), plural(order_least(each), "launch", "launches")))
  }
  sprintf("Each interval is by itself; \\S: differs from 1 also where all %s hold together at %s (Bonferroni%s).", count_text(m),
          percent_tex(confidence, 2), if (anyNA(ratios$apart)) ", of those with launches enough" else "")
}

#' group_intervals, and those in which all groups hold together.
#' @param scale of value and bounds
#' @return as group_intervals, with all_low and all_high; NA where there are too few launches
together_intervals <- function(rows, by, column, scale = 1) {
  each <- group_intervals(rows, by, column)
  if (is.null(each)) return(NULL)
  all <- group_intervals(rows, by, column, together = max(1, sum(is.finite(each$value))))
  each[c("all_low", "all_high")] <- all[c("low", "high")]
  bounds <- c("value", "low", "high", "all_low", "all_high")
  each[bounds] <- each[bounds] * scale
  each
}

#' What a caption says of intervals drawn twice.
#' @param by of together_intervals
bounds_sentence <- function(by, confidence = CONFIDENCE) {
  known <- by[is.finite(by$low), , drop = FALSE]
  m <- nrow(known)
  if (m < 2) return(NULL)
  if (all(is.na(known$all_low))) {
    return(sprintf("Each interval is by itself: for all %s to hold together, each takes %s.", count_text(m),
                   plural(order_least(each_confidence(m, confidence)), "launch", "launches")))
  }
  sprintf("Thick: each interval by itself; thin: all %s together at %s (Bonferroni).", count_text(m), percent_tex(confidence, 2))
}
