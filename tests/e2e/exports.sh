#!/bin/sh
# Exports and merges: tables that keep to the data dictionary, are whole or not there, and lose no row and no reason. Prints TAP.
set -u
# shellcheck source=tests/e2e/fixtures/runner_suite.sh
. "$(dirname "$0")/fixtures/runner_suite.sh"
cd "$dir" || exit 1

refused() { # refused WHAT CODE PATTERN COMMAND...
  what=$1 want=$2 pattern=$3
  shift 3
  is "$what: exit $want" "$(code "$@")" "$want"
  check "$what: says why in one line" sh -c 'grep -q -- "$1" "$2" && [ "$(wc -l < "$2")" -eq 1 ]' sh "$pattern" "$dir/err"
}

# rows FILE: the records as JSON arrays
rows() { awk -f "$fixtures/csv_rows.awk" "$1"; }
# keeps_to FILE RESOURCE: the table holds nothing that schema.json forbids
keeps_to() {
  rows "$1" > "$dir/table" || return 1
  broken=$(jq -n -r --slurpfile package "$root/experiments/schema.json" --arg resource "$2" -f "$fixtures/check_table.jq" \
    "$dir/table") || return 1
  [ -z "$broken" ] || { printf '%s\n' "$broken" | head -n 5 | cut -c -300; return 1; }
}
breaks() { ! keeps_to "$@" > "$dir/said"; }

# ---- the dictionary ----

check "schema.json is what schema.md makes" sh -c 'jq -n -R -f "$1/schema.jq" "$1/schema.md" | cmp - "$1/schema.json"' sh "$root/experiments"
jq -r '.resources[] | select(.name == "runs") | .schema.fields[] | [.name, .type, .unit // ""] | @csv' "$root/experiments/schema.json" > dictionary
check "every field has a description" jq -e '[.resources[].schema.fields[] | .description | length > 0] | all' "$root/experiments/schema.json"

# ---- runs to export: a kernel with all passes, failed rows with hostile words, one that is skipped, one allocator of the user ----

printf 'kernel = misbehave, null\nallocators = glibc, wrapper, absent\nact = ok, verify, kill\npasses = throughput, latency, memory\nops = 3000\nlat_gap = 1\nreps = 2\n' > mixed.sweep
is "a run with rows of many kinds: exit 1" "$(code ak run mixed.sweep --preset smoke --out mixed)" 1
is "it has them" "$(statuses mixed)" "crash 4, ok 6, skipped 6, verify_failed 4"
is "ak verify accepts it: exit 0" "$(code ak verify mixed)" 0
"$build/bin/ak" run latency --preset smoke --out real > /dev/null 2>&1
check "a run of the suite's own kernels" test -s real/matrix.csv
for folder in mixed real; do
  for file in runs hist timeline metrics matrix; do
    check "$folder/$file.csv keeps to the dictionary" keeps_to $folder/$file.csv $file
  done
  for form in wide long; do
    is "export $form of $folder: exit 0" "$(code ak export $folder --tidy $form --out $folder-$form.csv)" 0
    check "$folder-$form.csv keeps to the dictionary" keeps_to $folder-$form.csv $form
    ak export $folder --tidy $form | cmp - $folder-$form.csv > cmp.out
    is "standard output is the same" $? 0
  done
done
sed '2s/,ok,/,fine,/' real/runs.csv > bad.csv
check "the check sees a word that is none" breaks bad.csv runs
sed '2s/,0,compact,/,2,compact,/' real/runs.csv > bad.csv
check "the check sees a boolean that is none" breaks bad.csv runs
sed '1s/,kernel,/,kernal,/' real/runs.csv > bad.csv
check "the check sees another header" breaks bad.csv runs
tail -n 1 real/runs.csv | cat real/runs.csv - > bad.csv
check "the check sees a key twice" breaks bad.csv runs

rows mixed/runs.csv > a.json
rows mixed-wide.csv > b.json
is "wide begins with runs.csv, field by field" "$(jq -n --slurpfile a a.json --slurpfile b b.json '[$b[] | .[:$a[0] | length]] == $a')" true
is "every metric has a column, no reason has one" \
  "$(head -n 1 mixed-wide.csv | tr , '\n' | tail -n +$(($(head -n 1 mixed/runs.csv | tr , '\n' | wc -l) + 1)) | sort | tr '\n' ' ')" \
  "$(rows mixed/metrics.csv | jq -s -r --slurpfile a a.json '.[1:][] | select(.[1] as $name | .[3] != "" or ($a[0] | index($name) | not)) | .[1]' | sort -u | tr '\n' ' ')"
rows mixed-long.csv > long.json
long() { jq -s -r "(.[0] | to_entries | map({(.value): .key}) | add) as \$at | .[1:] | $1" long.json; } # .[$at.NAME]: a field
is "long has every launch and column once" "$(long '[.[] | select(.[$at.metric] == "ops")] | length')" 20
is "a value or a word or a reason, never two, never none" \
  "$(long 'map(select([.[$at.value], .[$at.word], .[$at.reason] | select(. != "")] | length != 1)) | map(.[$at.metric]) | unique | join(" ")')" ""
is "its units are the dictionary's" \
  "$(long 'map([.[$at.metric], .[$at.unit]]) | unique | .[] | @csv' | while IFS= read -r pair; do
    grep -q "^${pair%%,*}," dictionary || continue
    grep -q "^${pair%%,*},\"[a-z]*\",${pair#*,}\$" dictionary || printf '%s ' "$pair"
  done)" ""
is "why a launch has no numbers is said" "$(long 'map(select(.[$at.status] == "verify_failed" and .[$at.metric] == "ops")) | .[0][$at.reason]' | grep -c 'told to fail, with a "quote", and a comma')" 1
is "why a counter has none is said" "$(long 'map(select(.[$at.status] == "ok" and .[$at.metric] == "l3_miss" and .[$at.value] == "" and .[$at.reason] == "")) | length')" 0
check "no line of an export ends in CR, no byte is a BOM" sh -c '! LC_ALL=C grep -q "$(printf "\r\\|\357\273\277")" mixed-wide.csv mixed-long.csv'

# what a spreadsheet would run
cp -r mixed hostile
sed -i '2s/^\([^,]*,[^,]*\),mixed,/\1,=1+1,/; 3s/^\([^,]*,[^,]*\),mixed,/\1,"@SUM(A1,2)",/' hostile/runs.csv
is "export of texts like formulas: exit 0" "$(code ak export hostile --tidy wide --out hostile.csv)" 0
is "they begin with an apostrophe" "$(column hostile.csv sweep | sed -n '1,2p' | tr '\n' ' ')" "'=1+1 '@SUM(A1,2) "
is "negative numbers do not" "$(sed -i 's/^\([^,]*\),\([a-z_.]*\),\(bytes\),[0-9]*,/\1,\2,\3,-5,/' hostile/metrics.csv; ak export hostile --tidy long | grep -c ",bytes,-5,,")" \
  "$(grep -c ',bytes,-5,' hostile/metrics.csv)"

# R and an awk that knows nothing read them
if command -v Rscript > /dev/null; then
  is "R reads wide: rows, and numbers as numbers" "$(Rscript --vanilla -e 'w <- read.csv("real-wide.csv"); cat(nrow(w), is.numeric(w$wall_ns), is.numeric(w$launch_wall_ns), all(w$oversubscribed %in% 0:1))')" \
    "$(($(wc -l < real/runs.csv) - 1)) TRUE TRUE TRUE"
  is "R reads long: a number column and a word column" "$(Rscript --vanilla -e 'l <- read.csv("real-long.csv"); cat(is.numeric(l$value), is.character(l$word))')" "TRUE TRUE"
else
  skip "R reads the exports" "Rscript is not installed"
fi

# ---- bad input of export ----

refused "export without a folder" 2 "expected one results folder" ak export --tidy wide
refused "export without a form" 2 "expected --tidy wide or --tidy long" ak export real
refused "export in another form" 2 "--tidy tall" ak export real --tidy tall
refused "export of what is none" 2 "no folder" ak export none --tidy wide
refused "export of another folder" 2 "runs.csv: No such file" ak export "$suite" --tidy wide
refused "export over a file of the run" 2 "a file of the results folder" ak export real --tidy wide --out real/runs.csv
ln -s real/runs.csv link.csv
refused "export over a file of the run by a link" 2 "a file of the results folder" ak export real --tidy wide --out link.csv
refused "export to a folder" 2 "a folder" ak export real --tidy wide --out real
refused "export to nowhere" 3 "No such file" ak export real --tidy wide --out none/x.csv
refused "export to a full disk" 3 "No space left" ak export real --tidy wide --out /dev/full
check "the device is still one" test -c /dev/full
refused "export into a full disk" 3 "File too large" sh -c 'ulimit -f 1; exec "$0" export real --tidy long --out big.csv' "$ak"
refused "export to a closed pipe" 3 "Broken pipe" sh -c '{ "$0" export mixed --tidy long; echo $? > "$1"; } | true; exit "$(cat "$1")"' "$ak" "$dir/pipe"
is "a plan of which nobody reads the end: exit 0" \
  "$({ sleep 0.1; ak run mixed.sweep --preset smoke --dry-run; echo $? > pipe; } 2> err | true; cat pipe err)" 0
damaged() { # damaged WHAT CODE PATTERN SHELL-COMMAND: with a copy of the run in damaged/
  rm -rf damaged
  cp -r real damaged
  sh -c "$4"
  refused "$1" "$2" "$3" ak export damaged --tidy wide --out damaged.csv
  check "$1: nothing is left" sh -c '! ls damaged.csv* 2>/dev/null'
}
damaged "no metrics.csv" 2 "metrics.csv: No such file" 'rm damaged/metrics.csv'
damaged "another column" 2 "runs.csv:1: no column 'kernel'" 'sed -i "1s/,kernel,/,kern,/" damaged/runs.csv'
damaged "a field too many" 2 "runs.csv:2: .* fields, expected" 'sed -i "2s/^/x,/" damaged/runs.csv'
damaged "a stray quote" 2 "runs.csv:2: " 'sed -i "2s/compact/\"compact/" damaged/runs.csv'
damaged "a byte that is no UTF-8" 2 "runs.csv:2: byte .* UTF-8" 'sed -i "2s/compact/$(printf "\351")/" damaged/runs.csv'
damaged "a row twice" 2 "row .* again" 'tail -n 1 real/runs.csv >> damaged/runs.csv'
damaged "lines of a row apart" 2 "metrics.csv:[0-9]*: further lines" 'sed -n 2p real/metrics.csv >> damaged/metrics.csv'
damaged "metrics.csv cut" 2 "metrics.csv" 'head -n 20 real/metrics.csv > damaged/metrics.csv'
damaged "a metric that is no number" 2 "metrics.csv:2: .* is .nan." 'sed -i "2s/^\([^,]*,[^,]*,[^,]*\),[^,]*,.*/\1,nan,/" damaged/metrics.csv'
damaged "a metric with an exponent" 2 "metrics.csv:2: .* is .1e999." 'sed -i "2s/^\([^,]*,[^,]*,[^,]*\),[^,]*,.*/\1,1e999,/" damaged/metrics.csv'
damaged "a number out of range" 2 "runs.csv:2: ops_per_thread is" 'sed -i "2s/,\(uniform\|fixed\|loguniform\|[a-z_]*\),\([0-9]*\),\([0-9]*\),1,ok/,\1,99999999999999999999999999,\3,1,ok/" damaged/runs.csv'
damaged "another row_id" 2 "runs.csv:2: row_id" 'sed -i "2s/^./X/" damaged/runs.csv'
damaged "another run_id" 2 "runs.csv:2: run_id" 'sed -i "2s/,/,x/" damaged/runs.csv'
damaged "a NUL byte" 2 "runs.csv:[0-9]*: a NUL byte" 'printf "\\0" >> damaged/runs.csv'
damaged "a file that is a folder" 2 "not a regular file" 'rm damaged/runs.csv; mkdir damaged/runs.csv'
rm -rf damaged
cp -r real damaged
head -c -20 real/runs.csv > damaged/runs.csv
is "a torn last line: exit 0" "$(code ak export damaged --tidy wide --out torn.csv)" 0
check "it is told" grep -q 'runs.csv: the last line is torn and left out' err
is "it is left out" "$(wc -l < torn.csv)" "$(($(wc -l < real/runs.csv) - 1))"
printf 'old\n' > kept.csv
chmod 640 kept.csv
ln -s kept.csv kept-link.csv
refused "export over a file" 2 "kept-link.csv is there already; replace it with --force" ak export real --tidy wide --out kept-link.csv
is "it is as it was" "$(cat kept.csv)" old
is "with --force: exit 0" "$(code ak export real --tidy wide --out kept-link.csv --force)" 0
is "it says what it wrote" "$(cat err)" \
  "ak: wrote kept-link.csv: $(($(wc -l < real/runs.csv) - 1)) rows, $(head -n 1 real-wide.csv | tr , '\n' | wc -l) columns"
check "the link is still one, the file new, with its rights" sh -c '[ -L kept-link.csv ] && cmp -s kept.csv real-wide.csv && [ "$(stat -c %a kept.csv)" = 640 ]'

# ---- merges ----

cp -r real other
sed -i "s/$(jq -r .machine_id real/meta.json)/00000000feedbeef/; s/$(jq -r .run_id real/meta.json)/20260101T000000Z-1/" other/runs.csv other/meta.json
is "the other machine's run is one: exit 0" "$(code ak verify other)" 0
is "a merge of three: exit 0" "$(code ak merge real other mixed --out merged)" 0
is "ak verify accepts it: exit 0" "$(code ak verify merged)" 0
is "it has all rows" "$(column merged/runs.csv run_id | wc -l)" "$(cat real/runs.csv other/runs.csv mixed/runs.csv | grep -vc '^row_id,')"
is "machines stay apart" "$(column merged/runs.csv machine_id | sort -u | wc -l)" 2
check "each run's own meta.json is kept" sh -c 'for f in real other mixed; do cmp $f/meta.json merged/parts/$(jq -r .run_id $f/meta.json)/meta.json || exit 1; done'
for file in runs hist timeline metrics matrix; do
  sed 's/row_id/run_id,row_id/' /dev/null > sorted
  for folder in real other mixed; do
    awk -v id=",$(jq -r .run_id $folder/meta.json)" -v side=$file 'NR > 1 { print $0 (side == "runs" ? "" : id) }' $folder/$file.csv >> sorted
  done
  tail -n +2 merged/$file.csv | sort > have
  sort sorted | cmp - have > cmp.out
  is "no line of $file.csv is lost, added or changed" $? 0
done
for form in wide long; do
  is "export $form of a merge: exit 0" "$(code ak export merged --tidy $form --out merged-$form.csv)" 0
  check "it keeps to the dictionary" keeps_to merged-$form.csv $form
done
is "the same launch of two runs keeps its own metrics" \
  "$(ak export real --tidy long | tail -n +2 | cut -d, -f1,3- | grep -v ',machine_id,' | sort | cksum)" \
  "$(ak export merged --tidy long | grep ",$(jq -r .run_id real/meta.json)," | cut -d, -f1,3- | sort | cksum)"
cp -r real copy
is "a copy of a run: exit 0" "$(code ak merge real copy other --out copied)" 0
check "its rows are taken once, and told" grep -q 'lay in more than one folder and were taken once' out
is "ak verify accepts it: exit 0" "$(code ak verify copied)" 0
is "a merge of merges: exit 0" "$(code ak merge merged copied --out again)" 0
is "ak verify accepts it: exit 0" "$(code ak verify again)" 0
is "it has the rows of the first" "$(column again/runs.csv row_id | sort | cksum)" "$(column merged/runs.csv row_id | sort | cksum)"
head -n 3 real/runs.csv > copy/runs.csv
is "two parts of one run: exit 0" "$(code ak merge copy real --out parts)" 0
is "ak verify accepts it: exit 0" "$(code ak verify parts)" 0
if command -v Rscript > /dev/null; then
  cat > read.R <<'EOR'
args <- commandArgs(TRUE)
for (file in c("main.R", setdiff(list.files(args[1], "[.]R$"), "main.R"))) source(file.path(args[1], file))
contract <- read_contract(args[2])
all <- all_launches(read_results("merged", contract, "all"))
one <- suppressWarnings(all_launches(read_results("merged", contract, "")))
cat(nrow(all), anyDuplicated(all$key), length(unique(all$machine_id)), length(unique(one$machine_id)))
EOR
  is "R reads it: every launch once, machines apart" "$(Rscript --vanilla read.R "$root/analysis/R" "$root/experiments/schema.md")" \
    "$(column merged/runs.csv row_id | wc -l) 0 2 1"
else
  skip "R reads a merge" "Rscript is not installed"
fi
edited() { # edited WHAT PATTERN SHELL-COMMAND: what ak verify must see in a merge
  rm -rf tampered
  cp -r merged tampered
  sh -c "$3"
  is "ak verify sees $1: exit 1" "$(code ak verify tampered)" 1
  check "it says: $2" grep -q -- "$2" out
}
edited "a row of no run" "run_id 'x' is not in meta.json" 'sed -i "2s/,[^,]*,/,x,/" tampered/runs.csv'
edited "a side line of no run" "hist.csv:2: run_id 'x' is not in meta.json" 'sed -i "2s/,[^,]*$/,x/" tampered/hist.csv'
edited "a row that went away" "rows of run .* but runs.csv holds" 'sed -i 2d tampered/runs.csv'
edited "another machine in the list" "machine_id .* of run" 'sed -i "0,/\"machine_id\": \"/s//\"machine_id\": \"x/" tampered/meta.json'
edited "a changed plan of one run" "parts/.*/plan.csv:2: row_id" 'for p in tampered/parts/*/plan.csv; do sed -i "2s/,glibc,/,wrapper,/" $p; done'
edited "a changed sweep of one run" "parts/.*/sweep.ini: not the text" 'for p in tampered/parts/*/sweep.ini; do echo "# x" >> $p; done'

# ---- bad input of merge ----

refused "merge of one" 2 "two results folders" ak merge real --out x
refused "merge without --out" 2 "expected --out" ak merge real other
refused "merge of a folder with itself" 2 "one folder" ak merge real real/ --out x
ln -s real real-link
refused "merge of a folder with a link to it" 2 "one folder" ak merge real real-link --out x
refused "merge into what is there" 2 "is there already" ak merge real other --out mixed
refused "merge into a file" 2 "is there already" ak merge real other --out link.csv
refused "merge into one of the runs" 2 "lies in real" ak merge real other --out real/x
refused "merge into one of the runs by a link" 2 "lies in real" ak merge real other --out real-link/x
refused "merge to nowhere" 2 "No such file" ak merge real other --out none/x
refused "merge to where no folder can be" 3 "^ak: /proc/x: " ak merge real other --out /proc/x
refused "merge of what is none" 2 "no folder" ak merge real none --out x
refused "merge of another folder" 2 "meta.json" ak merge real "$suite" --out x
refused "merge into a full disk" 3 "File too large" sh -c 'ulimit -f 8; exec "$0" merge real other --out x' "$ak"
merging() { # merging WHAT PATTERN SHELL-COMMAND: with another version of the run in damaged/
  rm -rf damaged
  cp -r real damaged
  sh -c "$3"
  refused "$1" 2 "$2" ak merge real damaged --out x
}
merging "a row that differs" "damaged/runs.csv:2: row .* is another one at real/runs.csv:2" 'sed -i "2s/,compact,/,scatter,/" damaged/runs.csv'
merging "a side line that differs" "damaged/runs.csv:.* is another one" 'sed -i "s/,modified,/,shared,/" damaged/matrix.csv'
merging "another schema" "damaged/runs.csv:1: no column 'kernel'" 'sed -i "1s/,kernel,/,kern,/" damaged/runs.csv'
merging "a further column" "damaged/runs.csv:1: column 83 is 'more', expected '' as in real" 'sed -i "1s/$/,more/; 2,\$s/$/,/" damaged/runs.csv'
merging "another schema of a side file" "damaged/metrics.csv:1: another header" 'sed -i "1s/unit/units/" damaged/metrics.csv'
merging "two runs of one id" "different runs of one run_id" 'jq ".seed = 9" real/meta.json > damaged/meta.json'
merging "a run_id that is a path" "run_id '../x'" 'jq ".run_id = \"../x\"" real/meta.json > damaged/meta.json'
merging "a number out of range" "runs.csv:2: .* expected a number" 'cp real/runs.csv damaged/; sed -i "2s/,1,ok,,\([0-9]*\),\([0-9]*\),/,1,ok,,\1,99999999999999999999999999,/" damaged/runs.csv'
merging "a cut side file" "lacks lines" 'head -n 3 real/metrics.csv > damaged/metrics.csv'
check "nothing of all this is left" sh -c '! ls -d x x.new* 2>/dev/null'
refused "resuming a merge" 2 "merged runs" ak run mixed.sweep --preset smoke --out merged --resume
flock -s real "$ak" merge real other --out held > out 2> err
is "a folder that is only read by others: exit 0" $? 0
flock real sh -c '"$0" merge real other --out x > out 2> err; echo $?' "$ak" > status
is "a folder that another ak writes: exit 2" "$(cat status)" 2

# a signal in the middle: the reader is held up at a pipe
big() { # big FOLDER: many rows, so that a merge takes a moment
  awk 'NR == 1 { print; next } { for (i = 0; i < 4000; i++) { sub(/^[^,]*/, sprintf("%08x%08x", NR, i)); print } }' other/runs.csv > "$1/runs.csv"
}
cp -r other slow
big slow
head -n 1 real/metrics.csv > slow/metrics.csv
sed -i 's/,ok,/,skipped,/' slow/runs.csv
for signal in INT TERM; do
  "$ak" merge slow real --out cut > out 2> err &
  pid=$!
  wait_until 5 sh -c 'ls -d cut.new-* 2>/dev/null'
  kill -$signal $pid 2> kill.err
  wait $pid
  got=$?
  if [ -d cut ]; then # it was faster
    is "merge, SIG$signal too late: exit 0, and whole" "$got $(code ak export cut --tidy wide --out cut.csv)" "0 0"
  else
    is "merge, SIG$signal: exit 1" "$got" 1
  fi
  check "merge, SIG$signal: nothing half-written" sh -c '! ls -d cut.new-* 2>/dev/null'
  rm -rf cut
done
mkfifo held-up
sh -c 'exec 9< held-up; exec sleep 5' &
holder=$!
"$ak" export slow --tidy wide > held-up 2> err &
pid=$!
sleep 0.3
kill -TERM $pid
wait $pid
is "export to a pipe that nobody reads, SIGTERM: exit 1" $? 1
kill $holder 2> kill.err
finish
