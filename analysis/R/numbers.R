# The macros of the prose: every number in the paper's text is one of these, or stands in a caption's.

#' A value as macro text; a missing one becomes the reason, in words.
macro_value <- function(text, reason) {
  if (length(text) == 0 || is.na(text) || text == "") {
    return(paste0("\\emph{(not measured here: ", tex_escape(reason), ")}"))
  }
  text
}

#' Constants of the method, stated once in the code and repeated by the text.
method_macros <- function() {
  c(confidence = paste0(100 * CONFIDENCE, "\\,\\%"), minLaunches = count_text(MIN_LAUNCHES),
    bcaLaunches = count_text(BCA_LAUNCHES), bootResamples = count_text(BOOT_RESAMPLES),
    samplesBeyond = count_text(SAMPLES_BEYOND), overheadFactor = count_text(OVERHEAD_FACTOR))
}

#' What the data hold.
data_macros <- function(results, claims) {
  runs <- results$runs
  ok <- ok_rows(runs)
  cpus <- unique(stats::na.omit(ok$cpus))
  c(nLaunches = count_text(nrow(runs)), nOk = count_text(nrow(ok)), nFailed = count_text(nrow(runs) - nrow(ok)),
    nAllocators = count_text(length(unique(stats::na.omit(ok$allocator)))),
    nKernels = count_text(length(unique(ok$kernel))), nSweeps = count_text(length(results$folders)),
    nOversubscribed = count_text(sum(ok$oversubscribed %in% 1)),
    nClaims = count_text(nrow(claims$claims)), nSources = count_text(length(unique(claims$claims$source))),
    maxThreads = macro_value(if (nrow(ok) > 0) count_text(max(ok$threads)), "no ok rows"),
    nCpus = macro_value(if (length(cpus) > 0) paste(sort(cpus), collapse = " or "), "no ok rows"),
    maxSteal = macro_value(if (any(is.finite(ok$steal_ratio))) {
      paste0(number_text(100 * max(ok$steal_ratio, na.rm = TRUE), 2), "\\,\\%")
    }, "steal time is not recorded"))
}

#' The published numbers and conditions, from the claims data.
published_macros <- function(claims) {
  wanted <- published_conditions(claims)
  threads <- as.numeric(wanted$threads)
  part <- c(paper.ops = "Ops", paper.p999 = "Tail", paper.l3 = "Cache", paper.rss = "Rss")
  values <- unlist(lapply(names(part), function(id) {
    stats::setNames(vapply(PUBLISHED_ALLOCATORS, function(a) published_text(published_value(claims, id, a)), ""),
                    paste0("pub", part[[id]], macro_part(PUBLISHED_ALLOCATORS)))
  }))
  mean_total <- threads / (published_value(claims, "paper.ops", "mimalloc") * 1e6) * 1e9
  tail <- published_value(claims, "paper.p999", "mimalloc")
  c(values, pubThreads = count_text(threads), pubCycles = count_text(as.numeric(wanted$cycles)),
    pubSizeMin = tex_escape(wanted$size_min), pubSizeMax = tex_escape(wanted$size_max),
    pubVersionGlibc = tex_escape(wanted$version.glibc), pubVersionJemalloc = tex_escape(wanted$version.jemalloc),
    pubVersionMimalloc = tex_escape(wanted$version.mimalloc),
    pubTotalMean = number_text(mean_total, 4), pubTotalTail = number_text((mean_total - tail) / 1e-3 * 1e-6))
}

#' The verdicts as words, and what they rest on.
verdict_macros <- function(comparison) {
  verdicts <- comparison$verdicts
  part <- c(paper.ops = "Ops", paper.p999 = "Tail", paper.l3 = "Cache", paper.rss = "Rss")
  words <- stats::setNames(verdicts$verdict, paste0("verdict", part[verdicts$claim]))
  counts <- table(factor(verdicts$verdict, VERDICTS))
  counts <- counts[counts > 0]
  sensitivity <- if (comparison$several) {
    settings <- unique(comparison$details$setting)
    changed <- verdicts$metric[verdicts$depends %in% TRUE]
    paste0("It was measured in ", length(settings), " settings; ",
           if (length(changed) == 0) "no verdict depends on it."
           else paste0("verdicts that change with it or with the reading: ", paste(changed, collapse = ", "), "."))
  } else {
    "The sensitivity to the live set was not measured in these data, so no verdict here is better than direction only."
  }
  c(words, verdictCounts = tex_escape(paste(counts, names(counts), collapse = ", ")),
    sensitivityText = tex_escape(sensitivity))
}

#' Numbers of the model.
model_macros <- function(fit) {
  held <- fit$held_out$error
  worst <- fit$model$error
  percent <- function(x) paste0(number_text(100 * x, 2), "\\,\\%")
  joint <- fit$fit[fit$fit$term == "joint_residual" & is.finite(fit$fit$value), ]
  c(heldOutMedian = macro_value(if (length(held) > 0) percent(stats::median(abs(held))), "too few sizes of fastpath"),
    heldOutWorst = macro_value(if (length(held) > 0) percent(max(abs(held))), "too few sizes of fastpath"),
    heldOutPoints = count_text(length(held)),
    modelMedianError = macro_value(if (any(is.finite(worst))) percent(stats::median(abs(worst), na.rm = TRUE)),
                                   "no prediction of churn"),
    jointCount = count_text(nrow(joint)))
}

#' All macros, by name.
all_numbers <- function(results, fit, claims, registry) {
  c(method_macros(), data_macros(results, claims), published_macros(claims),
    verdict_macros(compare_published(results, claims)), model_macros(fit),
    finding_macros(results, registry))
}
