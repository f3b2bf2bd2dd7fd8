# What every figure shares. Run in the folder of the generated data:
#   GNUPLOT_LIB=analysis/plots gnuplot -c analysis/plots/NAME.gp FORMAT
# FORMAT is pdf or svg (each figure keeps it: load empties ARG1); NAME.dat and NAME-*.gp come from analysis/figures.R, style.gp from the registry.
if (!exists("height")) height = 2.9
width = 6.3
font = 'DejaVu Sans'
# Enhanced text is off: names from the data may hold _ ^ { } @ and must print as they are.
if (format eq 'svg') {
  set terminal svg noenhanced font font.',11' size width*96, height*96 background '#ffffff'
} else {
  set terminal pdfcairo noenhanced font font.',8' size width in, height in linewidth 1.0
}
set output name.'.'.format

set encoding utf8
set datafile missing 'NaN'
load 'style.gp'
set border 3 lc rgb '#404040'
set tics nomirror out scale 0.6 textcolor rgb '#202020'
set grid ytics lc rgb '#e4e4e4' lw 0.6 dt 1
set key off
set bars 0.6
# Intervals on lines are vectors: error bars erase a disc of the line below them.
set style fill solid noborder

# Shade of the region in which threads outnumber CPUs, and of what the clock cannot resolve.
SHADE = '#f0eee8'
