# run.R [PATTERN]: run the R tests (tests/R/test_*.R, those whose name matches) and print TAP. Exit 1 if one failed.
file_arg <- grep("^--file=", commandArgs(FALSE), value = TRUE)
tests_dir <- dirname(normalizePath(gsub("~+~", " ", sub("^--file=", "", file_arg), fixed = TRUE))) # R's way to pass a blank
suite <- normalizePath(file.path(tests_dir, "..", ".."))
pattern <- commandArgs(trailingOnly = TRUE)
if (!requireNamespace("testthat", quietly = TRUE)) {
  cat("1..1\nok 1 - R tests # SKIP the R package testthat is not installed (r-cran-testthat)\n")
  quit(save = "no", status = 0)
}
library(testthat)
for (name in c("main.R", setdiff(list.files(file.path(suite, "analysis", "R"), "[.]R$"), "main.R"))) {
  source(file.path(suite, "analysis", "R", name))
}
source(file.path(tests_dir, "synthetic.R"))
source(file.path(tests_dir, "helpers.R"))
contract <- read_contract(file.path(suite, "experiments", "schema.md"))

#' One TAP line of a test's results, with the failures' messages as comments.
tap_line <- function(number, test) {
  kinds <- vapply(test$results, function(r) class(r)[1], "")
  bad <- kinds %in% c("expectation_failure", "expectation_error")
  skipped <- kinds == "expectation_skip"
  words <- function(r) gsub("\n", "\n#   ", conditionMessage(r))
  line <- sprintf("%s %d - %s", if (any(bad)) "not ok" else "ok", number, test$test)
  if (!any(bad) && any(skipped)) line <- paste(line, "# SKIP", sub("^Reason: ", "", words(test$results[skipped][[1]])))
  c(line, if (any(bad)) paste0("#   ", vapply(test$results[bad], words, "")))
}

files <- sort(list.files(tests_dir, "^test_.*[.]R$", full.names = TRUE))
if (length(pattern) > 0) files <- files[grepl(pattern[1], basename(files))]
tests <- list()
for (file in files) {
  reporter <- ListReporter$new()
  with_reporter(reporter, source(file, local = new.env()))
  tests <- c(tests, reporter$get_results())
}
cat(sprintf("1..%d\n", length(tests)))
lines <- unlist(lapply(seq_along(tests), function(i) tap_line(i, tests[[i]])))
writeLines(lines)
quit(save = "no", status = as.integer(any(startsWith(lines, "not ok")) || length(tests) == 0))
