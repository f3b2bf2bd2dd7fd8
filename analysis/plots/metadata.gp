# Cost of an operation by size on one thread, a panel a variant of the kernel. Hollow points hold system time.
name = 'metadata'
format = ARG1
height = 3.0
load 'common.gp'
load 'metadata-vars.gp'
set multiplot layout 1,panels margins 0.075, 1 - label_share, 0.14, 0.91 spacing 0.06, 0
set logscale x 2
set logscale y
set xrange [x_low:x_high]
set yrange [y_low:y_high]
load 'metadata-tics.gp'
load 'metadata-ytics.gp'
set xlabel 'size, bytes'
do for [k=1:panels] {
  set ylabel (k == 1 ? 'ns an operation' : '')
  unset label
  unset arrow
  load sprintf('metadata-labels-%d.gp', k)
  plot for [i=1:series] 'metadata.dat' index (k-1)*series+i-1 using 1:2 with lines lt lt_of[i] lw 1.4, \
       for [i=1:series] '' index (k-1)*series+i-1 using 1:3:(0):($4-$3) with vectors nohead lt lt_of[i] dt 1 lw 2.5, \
       for [i=1:series] '' index (k-1)*series+i-1 using 1:($5 > 0 ? $2 : NaN) with points lt lt_of[i] pt 7 ps 0.3, \
       for [i=1:series] '' index (k-1)*series+i-1 using 1:($5 > 0 ? NaN : $2) with points lc rgb '#ffffff' pt 7 ps 0.4, \
       for [i=1:series] '' index (k-1)*series+i-1 using 1:($5 > 0 ? NaN : $2) with points lt lt_of[i] pt 6 ps 0.4
}
unset multiplot
