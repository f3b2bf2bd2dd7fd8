# The columns of a results folder, read from experiments/schema.md, the one place that states them.

STATUSES <- c("ok", "crash", "timeout", "oom", "wrong_allocator", "verify_failed", "skipped", "error")

#' Parse the tables of schema.md.
#' @param file path of experiments/schema.md
#' @return named list (file name -> data.frame column, type, unit)
read_contract <- function(file) {
  if (!file.exists(file)) usage_error(file, ": not found; it states the columns of a results folder")
  lines <- readLines(file, warn = FALSE, encoding = "UTF-8")
  contract <- list()
  current <- NULL
  for (line in lines) {
    if (grepl("^## ", line)) {
      current <- trimws(sub("^## ", "", line))
    } else if (!is.null(current) && grepl("^\\| *[a-z0-9_]+ *\\|", line)) {
      cells <- trimws(strsplit(line, "|", fixed = TRUE)[[1]][2:4])
      if (cells[1] == "column") next
      contract[[current]] <- rbind(contract[[current]],
                                   data.frame(column = cells[1], type = cells[2], unit = cells[3]))
    }
  }
  if (is.null(contract[["runs.csv"]])) usage_error(file, ": no table of the columns of runs.csv")
  contract
}
