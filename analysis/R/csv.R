# CSV files that one analysis script writes and the next one reads.

MODEL_COLUMNS <- c("allocator", "n", "loop", "metadata", "os", "gap", "single", "residual", "predicted", "measured", "low",
                   "high", "launches", "error", "reason")
HELD_OUT_COLUMNS <- c("allocator", "variant", "size", "measured", "predicted", "error")

csv_number <- function(x) {
  whole <- is.finite(x) && x == round(x)
  format(if (whole) x else signif(x, 6), digits = 15, scientific = FALSE, trim = TRUE)
}

#' Write a data.frame (NULL: only the header) as CSV: quoted where needed, empty for NA,
#' whole numbers exactly, others to six digits.
write_csv <- function(data, columns, file) {
  if (is.null(data)) data <- as.data.frame(stats::setNames(rep(list(character()), length(columns)), columns))
  text <- lapply(data[columns], function(x) {
    if (is.numeric(x)) x <- ifelse(is.na(x), "", vapply(x, csv_number, ""))
    x <- ifelse(is.na(x), "", as.character(x))
    quote <- grepl("[\",\r\n]", x)
    x[quote] <- paste0("\"", gsub("\"", "\"\"", x[quote]), "\"")
    x
  })
  lines <- if (nrow(data) == 0) character() else do.call(paste, c(unname(text), sep = ","))
  write_lines(c(paste(columns, collapse = ","), lines), file)
}

#' Write what fit_model returns.
write_fit <- function(fit, out) {
  write_csv(fit$fit, FIT_COLUMNS, file.path(out, "fit.csv"))
  write_csv(fit$model, MODEL_COLUMNS, file.path(out, "model.csv"))
  write_csv(fit$held_out, HELD_OUT_COLUMNS, file.path(out, "heldout.csv"))
  write_worlds(fit, out)
}

#' Read a CSV of an earlier script; refuses a missing file or column.
#' @param text TRUE: every column as it stands there
read_csv <- function(file, columns, text = FALSE) {
  if (!file.exists(file)) usage_error(file, ": not found; the analysis script that makes it was not run")
  data <- utils::read.csv(file, na.strings = "", check.names = FALSE, encoding = "UTF-8",
                          colClasses = if (text) "character" else NA)
  missing <- setdiff(columns, names(data))
  if (length(missing) > 0) usage_error(file, ": missing columns: ", paste(missing, collapse = ", "))
  data
}

#' Read what write_fit wrote.
read_fit <- function(out) {
  c(list(fit = read_csv(file.path(out, "fit.csv"), FIT_COLUMNS),
         model = read_csv(file.path(out, "model.csv"), MODEL_COLUMNS),
         held_out = read_csv(file.path(out, "heldout.csv"), HELD_OUT_COLUMNS)), read_worlds(out))
}
