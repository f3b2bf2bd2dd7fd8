# Text: escapes for LaTeX and gnuplot, printed numbers, captions and macros.

test_that("LaTeX's special characters are escaped once", {
  expect_equal(tex_escape("a_b 100% #1 & $x {y}"), "a\\_b 100\\% \\#1 \\& \\$x \\{y\\}")
  expect_equal(tex_escape("c:\\x^2~\"q\"<>|"), paste0("c:\\textbackslash{}x\\textasciicircum{}2\\textasciitilde{}",
                                                     "\\textquotedbl{}q\\textquotedbl{}\\textless{}\\textgreater{}\\textbar{}"))
  expect_equal(tex_escape("line\nbreak\ttab"), "line break tab")
  expect_equal(tex_escape("ak run --counters sim"), "ak run -{}-counters sim")
  expect_true(is.na(tex_escape(NA)))
  expect_match(tex_escape("\u00fc"), "^[ -~]*$")
})

test_that("gnuplot strings end where they should", {
  expect_equal(gnuplot_string("it's \"x\" \\n {_^}"), "'it''s \"x\" \\n {_^}'")
  expect_equal(gnuplot_tic("50%"), "'50%%'")
})

test_that("odd names survive gnuplot", {
  skip_if(Sys.which("gnuplot") == "", "gnuplot is not installed")
  dir <- local_folder()
  odd <- c("a_b^2{x}", "100% \"q\" it's", "back\\slash #1 @2", "$HOME `id`", "<b>&amp;")
  rows <- list()
  for (name in odd) for (rep in 1:6) {
    rows <- c(rows, list(plain_row(allocator = name, rep = rep, size_min = 16, size_max = 64, live_peak_bytes = 1,
                                   usable_peak_bytes = 2, rss_overhead_bytes = 3e6)))
  }
  results <- read_rows(dir, rows)
  registry <- complete_registry(read_registry(""), odd)
  out <- file.path(dir, "out")
  figures <- list(throughput = figure_throughput(results, registry), rss = figure_rss(results, registry))
  expect_silent(write_figures(figures, registry, file.path(suite, "analysis", "plots"), out))
  skip_if_not_installed("xml2")
  svg <- xml2::xml_text(xml2::read_xml(file.path(out, "rss.svg")))
  expect_match(svg, "<b>&amp;", fixed = TRUE)
  expect_match(svg, "a_b^2{x}", fixed = TRUE)
  expect_match(svg, "back\\slash #1 @2", fixed = TRUE)
  expect_match(svg, "$HOME `id`", fixed = TRUE)
  expect_match(svg, "100% ", fixed = TRUE)
})

test_that("latencies below three times the clock are upper bounds", {
  expect_equal(latency_tex(59.9, 20), "$\\le$ 59.9")
  expect_equal(latency_tex(60, 20), "60.0")
  expect_equal(latency_tex(59.9, NA), "59.9")
})

test_that("numbers print with three significant digits, bounds with the value's decimals", {
  expect_equal(number_text(c(0.0012345, 1.2345, 123.45, 123456, NA)), c("0.00123", "1.23", "123", "123,000", NA))
  expect_equal(interval_tex(interval_of(118, 117.6, 118.44)), "[118, 118]")
  expect_equal(interval_tex(interval_of(1.23, 1.2, 1.256)), "[1.20, 1.26]")
  expect_equal(interval_tex(interval_of(0, 0, 212.95)), "[0, 213]")
  expect_equal(interval_tex(interval_of(-7.95, -20.4, 3)), "[$-$20.4, 3.0]")
  expect_equal(published_text(c(4.12, 1420, 0.5)), c("4.12", "1420", "0.5"))
  expect_equal(launches_text(c(8, 7, NA, 8)), "7--8")
  expect_equal(launches_text(integer()), "0")
})

paper <- readLines(file.path(suite, "paper", "paper.tex"))

test_that("every caption is generated", {
  captions <- grep("\\\\caption\\{", paper, value = TRUE)
  expect_gt(length(captions), 10)
  expect_true(all(grepl("^\\\\caption\\{\\\\cap(Fig|Tab)[A-Za-z]+\\{\\}\\}$", captions)))
})

test_that("every macro that the paper uses is generated", {
  root <- tempfile("ak-")
  dir.create(root)
  results <- read_results(root, contract)
  fit <- fit_model(results)
  out <- local_folder()
  write_fit(fit, out)
  fit <- read_fit(out)
  registry <- complete_registry(read_registry(""), character())
  claims <- read_claims(file.path(suite, "paper"))
  write_figures(all_figures(results, fit, registry), registry, file.path(suite, "analysis", "plots"), out)
  write_tables(all_tables(results, fit, claims, registry), out)
  write_lines(macro_lines(all_numbers(results, fit, claims, registry)), file.path(out, "numbers.tex"))
  made <- unlist(lapply(list.files(out, "macros[.]tex$|numbers[.]tex$", full.names = TRUE), readLines))
  made <- sub("^\\\\newcommand\\{\\\\([A-Za-z]+)\\}.*", "\\1", made)
  expect_false(any(duplicated(made)))
  ours <- "\\\\(n|say|cap|pub|verdict|min|bca|boot|samples|overhead)[A-Z][A-Za-z]*\\{\\}"
  used <- unique(unlist(regmatches(paper, gregexpr(ours, paper))))
  used <- sub("^\\\\", "", sub("\\{\\}$", "", used))
  expect_gt(length(used), 40)
  expect_equal(setdiff(used, made), character())
  bodies <- unlist(regmatches(paper, gregexpr("\\\\(figure|table)body\\{[a-z0-9]+\\}", paper)))
  bodies <- sub("\\\\figurebody\\{(.*)\\}", "fig-\\1.tex", sub("\\\\tablebody\\{(.*)\\}", "tab-\\1.tex", bodies))
  expect_true(all(file.exists(file.path(out, bodies))))
})

test_that("labels keep their distance and their order", {
  at <- c(0.5, 0.51, 0.52, 0.9, 0.02)
  placed <- spread_labels(at, 0.05, 0, 1)
  expect_true(all(diff(sort(placed)) >= 0.0499))
  expect_equal(order(placed), order(at))
  expect_equal(spread_labels(numeric(), 0.05), numeric())
})

test_that("the registry gives label, colour and dash; unknown allocators get their own", {
  dir <- local_folder()
  file <- file.path(dir, "registry.ini")
  writeLines(c("# comment", "[one]", "label = One # the first", "colour = 2", "", "[two]", "colour=2",
               "[three]", "colour = 99"), file)
  registry <- read_registry(file)
  expect_equal(registry$section, c("one", "two", "three"))
  expect_equal(registry$label, c("One", "two", "three"))
  expect_equal(registry$colour[1:2], rep(PALETTE[2], 2))
  expect_equal(registry$dash[1:2], 1:2)
  more <- complete_registry(registry, c("one", "zzz", NA))
  expect_equal(more$section, c("one", "two", "three", "zzz"))
})

test_that("the code is clean by the project's lintr settings", {
  skip_if_not_installed("lintr")
  files <- c(list.files(file.path(suite, "analysis"), "[.]R$", recursive = TRUE, full.names = TRUE),
             list.files(file.path(suite, "tests", "R"), "[.]R$", full.names = TRUE))
  old <- setwd(suite)
  on.exit(setwd(old))
  found <- unlist(lapply(files, function(file) {
    vapply(lintr::lint(file), function(l) sprintf("%s:%d: %s", basename(l$filename), l$line_number, l$message), "")
  }))
  expect_equal(as.character(found), character())
})
