# Every interval of a figure, a table or the fit is at its run's level, and says what blocks its launches share.

made <- local_folder()
write_synthetic(made, contract, reps = 6)
results <- read_results(made, contract)
registry <- complete_registry(read_registry(file.path(suite, "allocators", "registry.ini")), all_launches(results)$allocator)

#' A column of all rows replaced.
with_column <- function(results, name, value) {
  for (part in c("runs", "simulated")) results[[part]][[name]] <- value(results[[part]])
  results
}

# At this level six launches give no interval at all.
strict <- with_column(results, "confidence", function(rows) rep(0.999, nrow(rows)))
fitted_strict <- fit_model(strict)

#' Whether something of the kind "[1.2, 3.4]" stands in a text.
has_interval <- function(text) any(grepl("\\[[-$0-9.,]+, [-$0-9.,]+\\]", text))

test_that("the fit has no interval where the run's level asks for more launches", {
  for (part in c("fit", "model", "terms", "predicted", "plants", "handover")) {
    expect_true(all(is.na(fitted_strict[[part]]$low)), info = part)
    expect_true(any(is.finite(fitted_strict[[part]]$launches)), info = part)
  }
  expect_true(any(grepl("fewer than 11$", fitted_strict$fit$reason)))
})

test_that("nor have the tables and figures, which have some at the usual one", {
  claims <- read_claims(file.path(suite, "paper"), results)
  tables <- function(results, fit) all_tables(results, fit, claims, registry)
  tight <- tables(strict, fitted_strict)
  loose <- list(table_sharing(results, registry), table_remote(results, registry), table_coherence(results, registry),
                table_quantum(results, registry, "weave"), table_applications(results, registry), table_shares(results, registry),
                table_handover(list(handover = native_handover(results))))
  for (table in loose) expect_true(has_interval(table$lines))
  for (name in names(tight)) expect_false(has_interval(tight[[name]]$lines), info = name)
  figures <- all_figures(strict, fitted_strict, registry)
  for (name in names(figures)) {
    expect_false(any(grepl("with intervals| and intervals| and bars", figures[[name]]$caption)), info = name)
  }
  expect_false(has_interval(finding_macros(strict, fitted_strict, registry)))
})

test_that("launches that share a seed are told to, in every term", {
  paired <- with_column(results, "seed", function(rows) rows$rep %% 2)
  decomposed <- decompose(paired)
  parts <- list(fast = fit_metadata(paired$runs), whole = fit_whole(paired$runs)$fit, lines = fit_penalty(paired),
                terms = decomposed$terms, plants = fit_plants(paired, decomposed$cost))
  for (part in names(parts)) {
    own <- parts[[part]][is.finite(parts[[part]]$low), , drop = FALSE]
    expect_true(nrow(own) > 0 && all(grepl("2 blocks", own$method)), info = part)
  }
  expect_true(any(grepl("within 2 blocks", false_sharing_ratios(paired$runs)$method)))
  six <- merged_blocks(function(weights) colSums(weights * seq_len(12)), 12, CONFIDENCE, rep(1:6, 2))
  expect_match(six$method, "merged, of 6 blocks")
})

test_that("no script takes an interval of launches without their level", {
  calls <- unlist(lapply(list.files(file.path(suite, "analysis", "R"), "[.]R$", full.names = TRUE), function(file) {
    lines <- readLines(file)
    lines <- lines[!grepl("<- function|^ *#", lines) & grepl("(median|combined)_interval[(]|paired_ratio[(]", lines)]
    paste0(basename(file), ": ", trimws(lines[!grepl("interval[(]numeric[(][)][)]", lines)]))
  }))
  # Where level and blocks are arguments, and tables of the benchmarks that no run with a stopping rule wrote.
  known <- c("bench.R: interval <- combined_interval(cells", "bench.R: median_interval(own[[column]] - empty",
             "bench.R: if (length(rounds)", "bench_simulator.R", "cells.R",
             "claims.R: ratio <- paired_ratio(values$a, values$b, values$confidence", "equivalence.R", "ratio.R")
  strange <- calls[grepl(": .", calls) & !Reduce(`|`, lapply(known, startsWith, x = calls))]
  expect_equal(strange, character())
})
