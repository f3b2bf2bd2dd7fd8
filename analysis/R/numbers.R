# The macros of the prose: every number in the paper's text is one of these, or stands in a caption's. A sentence that
# hangs on the data is a macro as a whole, worded for data that are there, few or missing.

#' Constants of the method, stated once in the code and repeated by the text.
method_macros <- function() {
  c(confidence = paste0(100 * CONFIDENCE, "\\,\\%"), minLaunches = count_text(MIN_LAUNCHES),
    bcaLaunches = count_text(BCA_LAUNCHES), bootResamples = count_text(BOOT_RESAMPLES),
    samplesBeyond = count_text(SAMPLES_BEYOND), overheadFactor = count_text(OVERHEAD_FACTOR))
}

#' What the data hold, in sentences.
data_macros <- function(results, claims) {
  runs <- results$runs
  ok <- ok_rows(runs)
  c(nClaims = count_text(nrow(claims$claims)), nSources = count_text(length(unique(claims$claims$source))),
    sayLaunches = launches_sentence(all_launches(results)), sayMachine = machine_sentence(ok),
    sayMissing = missing_sentence(ok, ok_rows(results$simulated)),
    sayThreats = threat_items(results, claims))
}

#' The abstract's count of launches: "run over 5 allocators in 90 process launches, of which 2 did not end well".
launches_sentence <- function(runs) {
  if (nrow(runs) == 0) return("; no launch is recorded in the results at hand")
  launched <- runs[!runs$status %in% NOT_LAUNCHED, , drop = FALSE]
  bad <- sum(launched$status != "ok")
  skipped <- nrow(runs) - nrow(launched)
  simulated <- sum(is_simulated(launched))
  ended <- if (bad == 0) paste0(", ", if (nrow(launched) > 1) "all of ", "which ended well")
           else paste0(", of which ", count_text(bad), " did not end well")
  paste0(", run over ", plural(length(unique(stats::na.omit(launched$allocator))), "allocator"), " in ",
         plural(nrow(launched), "process launch", "process launches"),
         if (simulated > 0) paste0(" (", if (simulated == nrow(launched)) "all" else count_text(simulated),
                                   " on a simulated machine)"),
         ended,
         if (skipped > 0) paste0(" (", count_text(skipped), " more could not be launched)"))
}

cpus_text <- function(ok) {
  cpus <- sort(unique(stats::na.omit(ok$cpus)))
  if (length(cpus) == 1) plural(cpus, "CPU") else paste(paste(cpus, collapse = " or "), "CPUs")
}

machine_sentence <- function(ok) {
  if (nrow(ok) == 0) return("")
  if (!any(ok$oversubscribed %in% 1)) return(paste0("The machine at hand has ", cpus_text(ok), "; no launch had more threads."))
  paste0("The machine at hand has ", cpus_text(ok), ", so thread counts above that measure descheduling as well; such rows are ",
         "shown and marked, and none of them enters the model or counts as a reproduction.")
}

#' What the rows lack, of the machine at hand; those of the simulated one are counted beside them.
missing_sentence <- function(ok, simulated) {
  over <- sum(ok$oversubscribed %in% 1)
  steal <- ok$steal_ratio[is.finite(ok$steal_ratio)]
  paste(c(if (nrow(ok) > 0) paste0("Of the ", plural(nrow(ok), "launch", "launches"),
                                   " on the machine at hand that ended well, ",
                                   if (over == 0) "none" else count_text(over), " had more threads than CPUs."),
          if (nrow(simulated) > 0) paste0("The other ", plural(nrow(simulated), "launch", "launches"),
                                          " that ended well ", if (nrow(simulated) == 1) "was" else "were",
                                          " on the simulated machine."),
          if (length(steal) > 0) paste0("The largest share of CPU time stolen by a hypervisor during a throughput pass was ",
                                        number_text(100 * max(steal), 2), "\\,\\%.")
          else "Time stolen by a hypervisor is not recorded in these data."), collapse = " ")
}

#' The threats that hang on what was measured, as LaTeX items.
threat_items <- function(results, claims) {
  ok <- ok_rows(results$runs)
  if (nrow(ok) == 0) return("")
  threads <- as.numeric(published_conditions(claims)$threads)
  paste(c(if (max(ok$cpus, na.rm = TRUE) < threads) {
    sprintf(paste("\\item \\textbf{Too few CPUs.} The published table has %s; here at most %s. What differs with more threads",
                  "than CPUs is scheduling first and the allocator second."),
            plural(threads, "thread"), if (max(ok$cpus) == 1) "one runs at once" else paste(max(ok$cpus), "run at once"))
  }, paste("\\item \\textbf{Other versions.} Table~\\ref{tab:versions} lists what was run; the verdicts name every difference",
           "from the published versions.")), collapse = " ")
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

#' What the verdicts on the published table rest on.
sensitivity_macros <- function(comparison) {
  verdicts <- comparison$verdicts
  changed <- verdicts$metric[verdicts$depends %in% TRUE]
  sensitivity <- if (comparison$several) {
    paste0("It was measured in ", length(unique(comparison$details$setting)), " settings",
           if (length(comparison$fixed) > 0) {
             paste0(" (not varied, so that no verdict is better than direction only: ", and_list(comparison$fixed), ")")
           }, "; ",
           if (length(changed) == 0) "no verdict depends on it."
           else paste0("verdicts that change with it or with the reading: ", paste(changed, collapse = ", "), "."),
           " Table~\\ref{tab:sensitivity} has the ratios.")
  } else {
    paste0("The sensitivity to them was not measured in these data, so no verdict here is better than direction only.")
  }
  c(saySensitivity = sensitivity,
    sayConditions = if (comparison$several) "; the sensitivity above shows how much hangs on them" else "")
}

#' What the model says of held-out sizes and of the whole.
model_macros <- function(fit) {
  held <- abs(fit$held_out$error)
  error <- abs(fit$model$error[is.finite(fit$model$error)])
  percent <- function(x) paste0(number_text(100 * x, 2), "\\,\\%")
  gap <- any(fit$fit$term == "single_thread_gap" & is.finite(fit$fit$value))
  said <- c(if (length(held) == 0) "Too few sizes of the fast path were measured here to hold any out."
            else paste0("Leaving out every second size and interpolating it from its neighbours misses ",
                        "$T_{\\mathrm{metadata}}$ by ", percent(stats::median(held)), " in the median and ", percent(max(held)),
                        " at worst, over ", plural(length(held), "point"), "."),
            if (length(error) == 0) "The whole workload cannot be predicted from the fast path in these data."
            else paste0("The fast path alone predicts the whole workload (size mix and system time included) with a median ",
                        "error of ", percent(stats::median(error)), " (Table~\\ref{tab:model}): the gap and the residual are ",
                        "what it does not know."))
  c(sayHeldOut = paste(said, collapse = " "),
    sayGap = if (gap) " The single-thread gap shows what they leave out." else "")
}

#' All macros, by name.
#' @param ledger of claims_ledger
all_numbers <- function(results, fit, claims, registry, ledger = claims_ledger(results, claims)) {
  c(method_macros(), data_macros(results, claims), published_macros(claims),
    ledger_macros(ledger), sensitivity_macros(compare_published(results, claims)), model_macros(fit), worlds_macros(fit),
    finding_macros(results, fit, registry), anatomy_macros(results, claims, registry),
    coherence_macros(results, claims, registry), application_macros(results, registry),
    timed_macros(results, registry), quantum_macros(results, registry))
}
