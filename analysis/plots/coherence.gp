# Counts of the simulated machine by allocator: a row of panels a case (kernel), a column a count, all per operation.
name = 'coherence'
format = ARG1
load 'coherence-vars.gp'
height = 0.45 + cases * (0.46 + 0.125 * rows)
load 'common.gp'
set multiplot layout cases,metrics margins label_share, 0.985, 0.4 / height, 1 - 0.25 / height spacing 0.04, 0.34 / height
set yrange [rows + 0.6:0.4]
set grid noytics xtics
do for [k=1:cases*metrics] {
  unset label
  load sprintf('coherence-labels-%d.gp', k)
  plot 'coherence.dat' index k-1 using 2:1:3:4:5 with xerrorbars lc rgb variable pt 7 ps 0.5 lw 1.4
}
unset multiplot
