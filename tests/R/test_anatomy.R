# What hot calls execute: the table, the listings and the prose, from rows and listings made here.

anatomy_row <- function(...) synthetic_anatomy_row(run_columns(), ...)

write_anatomy <- function(dir, parts) {
  read_rows(dir, lapply(parts, `[[`, "row"), "fastpath-anatomy", metrics = unlist(lapply(parts, `[[`, "metrics")))
}

some_rows <- function(dir) {
  write_anatomy(dir, list(
    anatomy_row("a1", "mimalloc", 64, "warm", c(16, 7, 2, 0, 5, 0.95, 23.25)),
    anatomy_row("a2", "mimalloc", 64, "warm", c(16, 7, 2, 0, 5, 0.95, 23.25), rep = 2),
    anatomy_row("a3", "mimalloc", 64, "one", c(18, 7, 2, 0, 5, 0.95, 23.25)),
    anatomy_row("a4", "mimalloc", 4096, "warm", c(159, 41, 25, 0, 10, 0.75, 160)),
    anatomy_row("a5", "glibc", 64, "warm", c(41, 11, 6, 0, 7, 1, 41)),
    anatomy_row("a6", "glibc", 64, "one", c(41, 11, 6, 0, 7, 1, 41)),
    anatomy_row("a7", "glibc", 4096, "warm", c(178, 35, 17, 2, 12, 1, 178)),
    anatomy_row("a8", "tlfl", 64, "warm", c(16, 7, 2, 0, 5, 1, 16), status = "crash")
  ))
}

registry <- function() read_registry(file.path(suite, "allocators", "registry.ini"))

test_that("the table has the warm heap's counts by size and allocator, and says how many differ otherwise", {
  table <- table_anatomy(some_rows(local_folder()), registry())
  lines <- grep("mimalloc|glibc|tlfl", table$lines, value = TRUE)
  expect_length(lines, 4)
  expect_equal(lines[1], paste("64 B & glibc & 41 & 11 & 6 & 0 & 7 & 100\\,\\% & 41.0 & 42 & 12 & 7 & 0 & 8 & 100\\,\\% & 42.0",
                               "& 99.85\\,\\% \\\\"))
  expect_match(lines[2], "64 B & mimalloc & 16 & 7 & 2 & 0 & 5 & 95.0\\,\\% & 23.2", fixed = TRUE)
  expect_match(lines[4], "4 KiB & mimalloc & 159", fixed = TRUE)
  expect_match(paste(table$caption, collapse = " "), "With 300 other live blocks.*1 of 2 lines differs.*n = 1--2 launches")
  expect_match(paste(table$caption, collapse = " "), "with equal counts", fixed = TRUE)
})

test_that("launches that differ are marked", {
  dir <- local_folder()
  table <- table_anatomy(write_anatomy(dir, list(
    anatomy_row("b1", "mimalloc", 64, "warm", c(16, 7, 2, 0, 5, 0.95, 23.25)),
    anatomy_row("b2", "mimalloc", 64, "warm", c(19, 7, 2, 0, 5, 0.95, 23.25), rep = 2)
  )), registry())
  expect_true(any(grepl("mimalloc$^{*}$ & 17.5", table$lines, fixed = TRUE)))
  expect_match(paste(table$caption, collapse = " "), "asterisk: they differ", fixed = TRUE)
})

test_that("the text compares with what is published, and names those with locked instructions", {
  claims <- read_claims(file.path(suite, "paper"))
  said <- anatomy_macros(some_rows(local_folder()), claims, registry())[["sayAnatomy"]]
  expect_match(said, "Instructions of a hot malloc of 64 B: 16 in mimalloc and 41 in glibc;", fixed = TRUE)
  expect_match(said, "at 2 sizes: none in malloc, none in free. Of the others, glibc has some at 4 KiB.", fixed = TRUE)
  expect_match(said, "approaches 99.4\\,\\%. In the simulated L1 it is 99.85\\,\\%;", fixed = TRUE)
})

test_that("two listings stand side by side, and a long one is cut", {
  dir <- local_folder()
  some_rows(dir)
  synthetic_listing(dir, "mimalloc", "malloc", c("mov %fs:(%rax),%rdi", "lock incl 0x8(%rdx)", "ret"), c("lt", "a", "lb"))
  synthetic_listing(dir, "tlfl", "malloc", rep("nop", LISTING_LINES + 5))
  table <- table_path(read_results(dir, contract), registry(), "malloc")
  expect_true(any(grepl("& mimalloc 1.2\\_3 &  & tlfl 1.2\\_3", table$lines, fixed = TRUE)))
  first <- "\\texttt{lt} & \\texttt{mov \\%fs:(\\%rax),\\%rdi} &   & \\texttt{nop} \\\\"
  expect_true(any(grepl(first, table$lines, fixed = TRUE)))
  expect_true(any(grepl("\\texttt{a} & \\texttt{lock incl 0x8(\\%rdx)}", table$lines, fixed = TRUE)))
  expect_true(any(grepl("and 5 more", table$lines, fixed = TRUE)))
  expect_match(paste(table$caption, collapse = " "), "300 other blocks of the size live: .*95.0.* of 1,000 calls in mimalloc")
  expect_match(table_path(read_results(dir, contract), registry(), "free")$reason, "no listing")
})

test_that("a listing that is no JSON is refused by name", {
  dir <- local_folder()
  some_rows(dir)
  dir.create(file.path(dir, "disasm"))
  writeLines("{", file.path(dir, "disasm", "tlfl-free.json"))
  expect_error(table_path(read_results(dir, contract), registry(), "free"), "tlfl-free.json: not readable", class = "usage_error")
})

test_that("nothing counted reads as such", {
  dir <- local_folder()
  results <- write_anatomy(dir, list(anatomy_row("c1", "tlfl", 64, "warm", rep(0, 7), status = "crash")))
  expect_match(table_anatomy(results, registry())$reason, "not measured here: no ok rows of the anatomy kernel.*1 crash")
  expect_equal(anatomy_macros(results, read_claims(file.path(suite, "paper")), registry())[["sayAnatomy"]],
               "None was counted in these data.")
})
