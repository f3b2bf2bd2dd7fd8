# Every number in prose is a macro, code, or stands in prose_numbers.csv with what it hangs on or why it may stand there.
source(file.path(suite, "tests", "R", "prose.R"), local = TRUE)

allowed <- utils::read.csv(file.path(suite, "tests", "R", "prose_numbers.csv"), colClasses = "character", na.strings = "")
prose <- list("paper/paper.tex" = latex_prose(readLines(file.path(suite, "paper", "paper.tex"), encoding = "UTF-8")),
              "README.md" = markdown_prose(readLines(file.path(suite, "README.md"), encoding = "UTF-8")))

#' Cores of a machine of experiments/machines.
machine_cores <- function(name) {
  lines <- readLines(file.path(suite, "experiments", "machines", paste0(name, ".ini")))
  value <- function(key) as.numeric(sub("^[^=]*= *([0-9]+).*", "\\1", grep(paste0("^", key, " *="), lines, value = TRUE)))
  value("nodes") * value("cores_per_node")
}

for (file in names(prose)) {
  test_that(paste("the prose of", file, "holds no number of its own"), {
    expect_equal(numbers_in(without_allowed(prose[[file]], allowed$text[allowed$file == file])), character())
  })
}

test_that("what is allowed is there, has a reason, and what it hangs on holds", {
  for (i in seq_len(nrow(allowed))) {
    one <- allowed[i, ]
    expect_true(grepl(one$text, prose[[one$file]], fixed = TRUE), info = paste("stale:", one$text))
    expect_true(nzchar(one$reason), info = one$text)
    if (!is.na(one$holds)) expect_true(eval(parse(text = one$holds)), info = paste(one$text, "while", one$holds))
  }
})

test_that("numbers in figures and in words are found, those in code, macros and generated parts are not", {
  expect_length(numbers_in("It takes 3.5 ns, 1,000 times, and Three more."), 3)
  expect_length(numbers_in("It takes \\pubThreads{} threads, someone said, often."), 0)
  tex <- c("\\title{T}", "a % 12", "b\\,\\% 7 \\label{fig:c2c} \\ref{tab:x1}", "\\begin{table}[h4]")
  expect_equal(numbers_in(latex_prose(tex)), "\\title{T} a b\\,\\% 7")
  markdown <- c("a `5` [b](c7.md) 8", "    9", "<!-- x:begin -->", "10", "<!-- x:end -->", "1. one", "eleven")
  expect_length(numbers_in(markdown_prose(markdown)), 2)
  expect_equal(numbers_in(without_allowed("95 % and 95", "95 %")), "and 95")
})
