# Simulated throughput, and the tail of a malloc, against threads: one line an allocator, intervals as bars.
name = 'timed'
format = ARG1
height = 3.2
load 'common.gp'
load 'timed-vars.gp'
set multiplot layout 1,panels margins 0.075, 1 - label_share, 0.14, 0.91 spacing label_share + 0.05, 0
set logscale x 2
set xrange [x_low:x_high]
load 'timed-tics.gp'
set xlabel 'threads'
do for [k=1:panels] {
  unset label
  unset arrow
  load sprintf('timed-labels-%d.gp', k)
  plot for [i=1:series] 'timed.dat' index (k-1)*series+i-1 using 1:2 with lines lt lt_of[i] lw 1.6, \
       for [i=1:series] '' index (k-1)*series+i-1 using 1:3:(0):($4-$3) with vectors nohead lt lt_of[i] dt 1 lw 2.5, \
       for [i=1:series] '' index (k-1)*series+i-1 using 1:5:(0):($6-$5) with vectors nohead lt lt_of[i] dt 1 lw 0.7, \
       for [i=1:series] '' index (k-1)*series+i-1 using 1:2 with points lt lt_of[i] pt 7 ps 0.35
}
unset multiplot
