# The whole taken apart by the simulated machine's counters: shares of an operation's time, a bar an allocator and thread count.
name = 'decomposed'
format = ARG1
load 'decomposed-vars.gp'
height = 1.3 + 0.16 * rows
if (height < 2.0) height = 2.0
load 'common.gp'
# The key is drawn here, in inches from the top left: gnuplot's own has to fit the plot, which long labels make narrow.
columns = 3
key_x(k) = 0.15 + 2.1 * ((k - 1) % columns)
key_y(k) = 0.13 + 0.17 * ((k - 1) / columns)
do for [k=1:terms] {
  set object k rectangle from screen key_x(k) / width, 1 - (key_y(k) + 0.05) / height \
      to screen (key_x(k) + 0.16) / width, 1 - (key_y(k) - 0.05) / height fillcolor rgb colour_of[k] fillstyle solid noborder
  set label name_of[k] at screen (key_x(k) + 0.22) / width, 1 - key_y(k) / height left textcolor rgb '#202020'
}
set tmargin at screen 1 - (key_y(terms) + 0.17) / height
set lmargin label_width
set rmargin 9
set xrange [x_low:x_high]
set yrange [rows + 0.6:0.4]
set grid noytics xtics
set xlabel '% of the time of an operation'
load 'decomposed-labels.gp'
plot for [k=1:terms] 'decomposed.dat' using (0):1:(column(k+1)):(column(k+2)):($1-0.34):($1+0.34) with boxxyerror lc rgb colour_of[k]
