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
