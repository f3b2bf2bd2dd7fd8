# What every analysis script shares: where the suite lies, loading the functions, how a script ends.

#' End the script as wrong usage or a bad input file (exit 2), with one line of why.
#' @param ... pasted into the message
usage_error <- function(...) {
  stop(structure(class = c("usage_error", "error", "condition"),
                 list(message = paste0(...), call = NULL)))
}

#' The folder of the running script, from Rscript's own --file argument.
script_dir <- function() {
  file_arg <- grep("^--file=", commandArgs(FALSE), value = TRUE)
  if (length(file_arg) == 0) return(".")
  dirname(normalizePath(gsub("~+~", " ", sub("^--file=", "", file_arg[1]), fixed = TRUE))) # R's way to pass a blank
}

#' Source every function file of a folder except this one.
#' @param dir the folder analysis/R
load_functions <- function(dir) {
  for (file in sort(list.files(dir, pattern = "[.]R$", full.names = TRUE))) {
    if (basename(file) != "main.R") source(file, local = globalenv())
  }
}

#' Make text sort, fold and transliterate alike everywhere: results copied to another machine give the same bytes.
fixed_locale <- function() {
  for (name in c("C.UTF-8", "C.utf8", "C")) {
    set <- vapply(c("LC_COLLATE", "LC_CTYPE"), function(part) suppressWarnings(Sys.setlocale(part, name)), "")
    if (all(nzchar(set))) break
  }
  Sys.setenv(TZ = "UTC", LANGUAGE = "en")
}

#' Run a script's body; print warnings as they come; exit 0 done, 2 wrong usage or bad input, 1 otherwise.
#' @param usage the usage line
#' @param n_args number of arguments the body takes
#' @param body function(args)
#' @param outputs patterns of the files that it makes: removed first, so that none of an earlier run is left where this
#'   one fails, or makes fewer
#' @param place which argument is the folder that they are made in
run_script <- function(usage, n_args, body, outputs = character(), place = n_args) {
  options(warn = 1)
  fixed_locale()
  args <- commandArgs(trailingOnly = TRUE)
  status <- tryCatch({
    if (length(args) != n_args) usage_error("usage: ", usage)
    if (length(outputs) > 0) unlink(file.path(glob_literal(args[place]), outputs))
    body(args)
    0L
  }, usage_error = function(e) {
    message(conditionMessage(e))
    2L
  }, error = function(e) {
    message("error: ", conditionMessage(e))
    1L
  })
  quit(save = "no", status = status)
}

#' A path that unlink takes as it is.
glob_literal <- function(path) gsub("([][*?])", "\\\\\\1", path)

#' The root of the suite: the folder above analysis/.
suite_root <- function() normalizePath(file.path(script_dir(), ".."))

#' Write lines with LF ends, creating the folder.
write_lines <- function(lines, file) {
  dir.create(dirname(file), showWarnings = FALSE, recursive = TRUE)
  con <- file(file, "wb")
  on.exit(close(con))
  writeLines(enc2utf8(lines), con, sep = "\n", useBytes = TRUE)
}
