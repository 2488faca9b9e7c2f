# Is the SQL of release() in a database what Spark SQL accepts? The statement for every kind of statistic is written for Spark
# and read by a parser with Spark's grammar (dt-sql-parser, for Node.js, with esbuild; both come from npm into a temporary
# directory). This says that the statements can be read, not what Spark computes; with a Spark at hand use release() itself.
#
#   Rscript tools/spark_grammar.R [file]      `file` keeps the statements, one a line

library(noiseaware)
internal <- function(name) getFromNamespace(name, "noiseaware")

bounds <- list(y = c(-10, 10), select = c(0, 10.3), "na`me 'x'" = c(0, 1 / 3), g = c("a", "b'c\\", "\u00c4"))
statistics <- list(
  stat_crossprod(y ~ select + `na\`me 'x'` + g, bounds), stat_moments4(~ y + select, bounds[1:2]), stat_sums(~ y + I(y^3), bounds[1], outside = "drop", rescale = FALSE),
  stat_counts(~ g:h, list(g = bounds$g, h = 0:2)), stat_histogram(~ y:g, breaks = list(y = c(-Inf, -2, 0, 1.5, Inf)), levels = bounds["g"]),
  stat_size())
types <- data.frame(y = 1, select = 1, `na\`me 'x'` = 1, g = "a", h = 1, check.names = FALSE)
dialect <- internal("sql_dialect")(structure(list(), class = "spark_connection"), NULL)

statement <- function(statistic) {
  columns <- internal("release_columns")(statistic)
  parts <- internal("partial_parts")(statistic, mech_laplace(epsilon = 1), if (statistic$name == "size") "add_remove" else "replace", 1000, NULL)
  variables <- internal("database_variables")(columns, types, dialect, NULL)
  query <- internal("totals_query")(parts, columns, variables, "(SELECT * FROM `some table`) `records`", dialect, NULL)
  c(query$sql, query$missing)
}
statements <- unlist(lapply(statistics, statement))
asked <- NULL
try(internal("check_dialect")(function(sql) {
  asked <<- sql
  data.frame(r1 = NA)
}, dialect, NULL), silent = TRUE)
statements <- c(statements, asked)
arguments <- commandArgs(TRUE)
if (length(arguments)) writeLines(statements, arguments[1L])

folder <- tempfile()
dir.create(folder)
writeLines(statements, file.path(folder, "statements.sql"))
writeLines(c("import { SparkSQL } from 'dt-sql-parser';", "import fs from 'fs';",
             "const parser = new SparkSQL();",
             "for (const sql of fs.readFileSync('statements.sql', 'utf8').trim().split('\\n').concat('SELEC 1')) {",
             "  const wrong = parser.validate(sql);",
             "  console.log(wrong.length === 0 ? 'read' : 'REFUSED: ' + wrong[0].message, '|', sql.slice(0, 60));",
             "}"), file.path(folder, "read.mjs"))
run <- function(...) if (system2(..., stdout = FALSE, stderr = FALSE) != 0L) stop("needs Node.js and npm")
old <- setwd(folder)
run("npm", c("install", "--no-save", "dt-sql-parser", "esbuild"))
run("npx", c("esbuild", "read.mjs", "--bundle", "--platform=node", "--outfile=read.cjs"))
said <- system2("node", "read.cjs", stdout = TRUE)
setwd(old)
cat(said, sep = "\n")
# the last is no statement: the parser has to refuse it, and it alone
if (!identical(grepl("^read", said), rep(c(TRUE, FALSE), c(length(statements), 1L)))) stop("not all statements were read as they should be")
