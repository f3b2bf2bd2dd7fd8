# The whole taken apart by the simulated machine's counters: shares of an operation's time, a bar an allocator and thread count.
name = 'decomposed'
format = ARG1
load 'decomposed-vars.gp'
height = 1.4 + 0.16 * rows
load 'common.gp'
set lmargin label_width
set rmargin 9
set xrange [x_low:x_high]
set yrange [rows + 0.6:0.4]
set grid noytics xtics
set xlabel '% of the time of an operation'
set key on outside top left horizontal reverse Left samplen 1.2 maxcols 2
load 'decomposed-labels.gp'
plot for [k=1:terms] 'decomposed.dat' using (0):1:(column(k+1)):(column(k+2)):($1-0.34):($1+0.34) with boxxyerror lc rgb colour_of[k] title name_of[k]
