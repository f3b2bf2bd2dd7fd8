# schema.jq: the tables of schema.md as a Frictionless data package, a resource a file.
#
#   jq -n -R -f experiments/schema.jq experiments/schema.md > experiments/schema.json      (make schema)

def trim: sub("^\\s+"; "") | sub("\\s+$"; "");
# The cells of a table's line; "\|" is a bar within a cell.
def cells: gsub("\\\\\\|"; "\u0001") | split("|")[1:-1] | map(gsub("\u0001"; "|") | trim);

# file name -> rows of its table
def tables:
  reduce inputs as $line ({file: null, rows: {}};
    if ($line | startswith("## ")) then .file = ($line[3:] | trim)
    elif .file != null and ($line | test("^\\| *[a-z0-9_]+ *\\|")) then
      ($line | cells) as [$name, $type, $unit, $allowed, $what]
      | if $name == "column" or $name == "key" or $allowed == null then .
        else .rows[.file] += [{$name, $type, $unit, $allowed, $what}] end
    else . end) | .rows;

def is_number: .type == "integer" or .type == "decimal";

def constraints:
  . as $column
  | (reduce ($column.allowed | split("; ")[]) as $rule ({};
      if $rule == "needed" then .required = true
      elif $rule == "any" or $rule == "" then .
      elif ($rule | test("^/.*/$")) then .pattern = "^(" + $rule[1:-1] + ")$"
      elif ($rule | test("^[0-9]+\\.\\.[0-9]*$")) then
        ($rule | split("..")) as [$low, $high]
        | .minimum = ($low | tonumber) | if $high == "" then . else .maximum = ($high | tonumber) end
      else .enum = ($rule | split(", ")) end))
  | if ($column | is_number) and ($column.unit != "0 or 1") and .minimum == null
      and ($column.allowed | test("any") | not) then .minimum = 0 else . end
  | if $column.unit == "0..1" then .maximum = 1 else . end;

def field:
  constraints as $constraints
  | {name, type: (if .unit == "0 or 1" then "boolean" elif .unit == "UTC" then "datetime"
                  elif .type == "decimal" then "number" elif .type == "text" then "string" else .type end)}
    + (if .unit == "0 or 1" then {trueValues: ["1"], falseValues: ["0"]}
       elif .unit == "UTC" or .unit == "" then {} else {unit: .unit} end)
    + {description: .what}
    + (if $constraints == {} then {} else {$constraints} end);

def resource($name; $what; $schema):
  {"$schema": "https://datapackage.org/profiles/2.0/dataresource.json", $name, type: "table", path: ($name + ".csv"),
   description: $what, format: "csv", mediatype: "text/csv", encoding: "utf-8",
   dialect: {delimiter: ",", lineTerminator: "\n", quoteChar: "\"", doubleQuote: true, header: true},
   schema: ({"$schema": "https://datapackage.org/profiles/2.0/tableschema.json", fieldsMatch: "subset", missingValues: [""]}
            + $schema)};

def of_runs($fields): {$fields, foreignKeys: [{fields: ["row_id"], reference: {resource: "runs", fields: ["row_id"]}}]};

tables
| .["runs.csv"] as $columns
| map_values(map(.name as $name | if .type == "as in runs.csv" then $columns[] | select(.name == $name) else . end))
| map_values(map(field)) as $fields
| {"$schema": "https://datapackage.org/profiles/2.0/datapackage.json", name: "alloc-kernels-results",
   title: "The files of a results folder of alloc-kernels, and its exports",
   description: "Made from experiments/schema.md. Empty fields were not measured. Further columns may follow.",
   resources: [
     resource("runs"; "A row a launch."; {fields: $fields["runs.csv"], primaryKey: ["run_id", "row_id"]}),
     resource("hist"; "Histograms of latencies."; of_runs($fields["hist.csv"])),
     resource("timeline"; "Memory over time."; of_runs($fields["timeline.csv"])),
     resource("metrics"; "Kernel parameters and rare metrics."; of_runs($fields["metrics.csv"])),
     resource("matrix"; "Latencies between CPUs."; of_runs($fields["matrix.csv"])),
     resource("wide"; "ak export --tidy wide: runs.csv, then every metric as a column of its own.";
       {fields: $fields["runs.csv"], primaryKey: ["run_id", "row_id"]}),
     resource("long"; "ak export --tidy long: a row a launch and measurement.";
       {fields: $fields["long.csv"], primaryKey: ["run_id", "row_id", "metric"]})]}
