# Slow-down by false sharing: writes to the blocks over writes to private lines, paired by launch.
name = 'falseshare'
format = ARG1
load 'falseshare-vars.gp'
height = 0.95 + 0.2 * rows
load 'common.gp'
set multiplot layout 1,panels margins label_share, 0.985, 0.42 / height, 1 - 0.25 / height spacing 0.05, 0
set logscale x
set xrange [x_low:x_high]
set yrange [rows + 0.6:0.4]
set grid noytics xtics
load 'falseshare-tics.gp'
set xlabel 'shared / private, time an operation'
set arrow 1 from 1, graph 0 to 1, graph 1 nohead lc rgb '#808080' lw 1 back
do for [k=1:panels] {
  load sprintf('falseshare-labels-%d.gp', k)
  plot 'falseshare.dat' index k-1 using 2:1:3:4:5 with xerrorbars lc rgb variable pt 7 ps 0.55 lw 1.4
}
unset multiplot
