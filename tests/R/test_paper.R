# The paper script and what the generated text says: refusals, captions and sentences for full, few and missing data.

#' paper.sh on a root, with an ak that answers as told.
run_paper <- function(root, ak_says = NULL) {
  dir <- local_folder()
  ak <- "none"
  if (!is.null(ak_says)) {
    ak <- file.path(dir, "ak")
    writeLines(c("#!/bin/sh", paste("echo", shQuote(ak_says)), "exit 1"), ak)
    Sys.chmod(ak, "755")
  }
  said <- suppressWarnings(system2("sh", shQuote(c(file.path(suite, "analysis", "paper.sh"), root, dir)),
                                   stdout = TRUE, stderr = TRUE, env = paste0("AK=", shQuote(ak))))
  list(status = attr(said, "status"), said = said)
}

test_that("results that do not exist are refused with one line that says what to do", {
  ran <- run_paper("/nowhere/results")
  expect_equal(ran$status, 2L)
  expect_length(ran$said, 1)
  expect_match(ran$said, "make reproduce.*RESULTS=")
})

test_that("a folder that ak verify rejects is refused with one line", {
  dir <- local_folder()
  read_rows(dir, list(plain_row()))
  ran <- run_paper(dir, "row 7: checksum differs")
  expect_equal(ran$status, 2L)
  expect_length(ran$said, 1)
  expect_match(ran$said, "/s: ak verify rejects it: row 7: checksum differs", fixed = TRUE)
})

test_that("two copies of a folder are refused, both named; another run of the same plan is not", {
  dir <- local_folder()
  rows <- list(plain_row(), plain_row(rep = 2))
  read_rows(dir, rows, "one")
  expect_error(read_rows(dir, rows, "two"), "/one and .*/two: the same launches lie in both \\(2 of run", class = "usage_error")
  again <- lapply(rows, function(row) {
    row$run_id <- "another"
    row
  })
  expect_equal(nrow(read_rows(dir, again, "two")$runs), 4)
})
