# Resident bytes of recorded programs over their calls, one panel a trace, one line an allocator; grey: what is live.
name = 'replay'
format = ARG1
height = 2.9
load 'common.gp'
load 'replay-vars.gp'
set multiplot layout 1,panels margins 0.06, 1 - label_share, 0.16, 0.9 spacing 0.05, 0
set xrange [0:100]
set xtics 0, 50, 100
set xlabel '% of the calls'
do for [k=1:panels] {
  unset label
  unset arrow
  set ylabel k == 1 ? 'MB' : ''
  load sprintf('replay-labels-%d.gp', k)
  plot 'replay.dat' index (k-1)*(series+1) using 1:2 with filledcurves y1=0 lc rgb '#d8d8d8', \
       for [i=1:series] '' index (k-1)*(series+1)+i using 1:2 with lines lt lt_of[i] lw 1.6
}
unset multiplot
